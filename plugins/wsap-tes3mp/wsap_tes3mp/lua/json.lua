-- A small strict JSON codec. Lua has one kind of table, JSON has two: what may be an empty list is made with
-- `json.list`, every other empty table is an object. Nothing that `encode` returns breaks a JSON reader: NaN and
-- infinity become null, bytes that are not UTF-8 become "?", and no line break is ever within a value.
local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }

local LIST = {}
local MAX_DEPTH = 32

function json.list(items)
    return setmetatable(items or {}, LIST)
end

function json.is_list(value)
    return type(value) == "table" and (getmetatable(value) == LIST or (#value > 0 and value ~= json.null))
end

-- The length of the UTF-8 sequence that begins at `at`, nil where none does (overlong forms and surrogates included).
local function sequence(text, at)
    local a, b, c, d = text:byte(at, at + 3)
    local function tail(byte, low, high) return byte and byte >= (low or 128) and byte <= (high or 191) end
    if a < 128 then return 1 end
    if a >= 194 and a <= 223 and tail(b) then return 2 end
    if a >= 224 and a <= 239 and tail(b, a == 224 and 160, a == 237 and 159) and tail(c) then return 3 end
    if a >= 240 and a <= 244 and tail(b, a == 240 and 144, a == 244 and 143) and tail(c) and tail(d) then return 4 end
    return nil
end

-- Text as valid UTF-8, each wrong byte replaced; the second result tells whether it was valid.
function json.utf8(text)
    if not text:find("[\128-\255]") then return text, true end
    local parts, at, valid = {}, 1, true
    while at <= #text do
        local length = sequence(text, at)
        parts[#parts + 1] = length and text:sub(at, at + length - 1) or "?"
        valid = valid and length ~= nil
        at = at + (length or 1)
    end
    return table.concat(parts), valid
end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function quoted(text)
    local escaped = json.utf8(text):gsub('[%c"\\\127]', function(char)
        return ESCAPES[char] or ("\\u%04x"):format(char:byte())
    end)
    return '"' .. escaped .. '"'
end

local function number(value)
    if value ~= value or value == math.huge or value == -math.huge then return "null" end
    if value == math.floor(value) and math.abs(value) < 2 ^ 53 then return ("%.0f"):format(value) end
    return (("%.14g"):format(value):gsub(",", "."))
end

local function write(value, out, depth)
    local kind = type(value)
    if depth > MAX_DEPTH then error("json: too deep", 0) end
    if kind == "string" then out[#out + 1] = quoted(value)
    elseif kind == "number" then out[#out + 1] = number(value)
    elseif kind == "boolean" then out[#out + 1] = tostring(value)
    elseif value == nil or value == json.null then out[#out + 1] = "null"
    elseif kind ~= "table" then error("json: can't write a " .. kind, 0)
    elseif json.is_list(value) then
        out[#out + 1] = "["
        for index = 1, #value do
            if index > 1 then out[#out + 1] = "," end
            write(value[index], out, depth + 1)
        end
        out[#out + 1] = "]"
    else
        local keys = {}
        for key in pairs(value) do keys[#keys + 1] = tostring(key) end
        table.sort(keys)
        out[#out + 1] = "{"
        for index, key in ipairs(keys) do
            if index > 1 then out[#out + 1] = "," end
            out[#out + 1] = quoted(key) .. ":"
            write(value[key], out, depth + 1)
        end
        out[#out + 1] = "}"
    end
end

-- Text of a value; keys are sorted, so that equal values have equal texts.
function json.encode(value)
    local out = {}
    write(value, out, 1)
    return table.concat(out)
end

local UNESCAPES = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function utf8_char(code)
    local function low(shift) return 128 + math.floor(code / 2 ^ shift) % 64 end
    if code < 0x80 then return string.char(code) end
    if code < 0x800 then return string.char(192 + math.floor(code / 64), low(0)) end
    if code < 0x10000 then return string.char(224 + math.floor(code / 4096), low(6), low(0)) end
    return string.char(240 + math.floor(code / 2 ^ 18), low(12), low(6), low(0))
end

local function fail(what, at)
    error(("json: %s at byte %d"):format(what, at), 0)
end

local function read_string(text, at)
    local parts, start = {}, at + 1
    while true do
        local stop = text:find('["\\%c]', start)
        if not stop then fail("a string without end", at) end
        parts[#parts + 1] = text:sub(start, stop - 1)
        local char, escape = text:sub(stop, stop), text:sub(stop + 1, stop + 1)
        if char == '"' then return table.concat(parts), stop + 1 end
        if char == "\127" then
            parts[#parts + 1], start = char, stop + 1
        elseif char ~= "\\" then fail("a control character", stop)
        elseif escape == "u" then
            local hex = text:match("^%x%x%x%x", stop + 2) or fail("a bad escape", stop)
            local code = tonumber(hex, 16)
            start = stop + 6
            if code >= 0xD800 and code <= 0xDBFF then
                local second = tonumber(text:match("^\\u([dD][c-fC-F]%x%x)", start) or fail("half a pair", stop), 16)
                code, start = 0x10000 + (code - 0xD800) * 1024 + (second - 0xDC00), start + 6
            elseif code >= 0xDC00 and code <= 0xDFFF then fail("half a pair", stop) end
            parts[#parts + 1] = utf8_char(code)
        else
            parts[#parts + 1] = UNESCAPES[escape] or fail("a bad escape", stop)
            start = stop + 2
        end
    end
end

local function skip(text, at)
    return text:find("[^ \t\r\n]", at) or #text + 1
end

local LITERALS = { t = { "true", true }, f = { "false", false }, n = { "null", json.null } }
local read

-- The members of a list or an object, from behind its opening bracket; `member` reads one.
local function members(text, at, close, member)
    at = skip(text, at)
    if text:sub(at, at) == close then return at + 1 end
    while true do
        at = skip(text, member(skip(text, at)))
        local char = text:sub(at, at)
        if char == close then return at + 1 end
        if char ~= "," then fail("a missing comma", at) end
        at = at + 1
    end
end

function read(text, at, depth)
    if depth > MAX_DEPTH then fail("too deep", at) end
    local char = text:sub(at, at)
    if char == '"' then return read_string(text, at) end
    if char == "[" then
        local list = json.list()
        return list, members(text, at + 1, "]", function(where)
            list[#list + 1], where = read(text, where, depth + 1)
            return where
        end)
    elseif char == "{" then
        local object = {}
        return object, members(text, at + 1, "}", function(where)
            if text:sub(where, where) ~= '"' then fail("a key that is no string", where) end
            local key, value
            key, where = read_string(text, where)
            where = skip(text, where)
            if text:sub(where, where) ~= ":" then fail("a missing colon", where) end
            value, where = read(text, skip(text, where + 1), depth + 1)
            if value ~= json.null then object[key] = value end
            return where
        end)
    elseif LITERALS[char] then
        local word, value = LITERALS[char][1], LITERALS[char][2]
        if text:sub(at, at + #word - 1) ~= word then fail("an unknown word", at) end
        return value, at + #word
    end
    local digits = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
    local value = digits and tonumber(digits)
    if not value or digits:match("^-?0%d") or digits:match("%.[eE]") or digits:match("%.$") then
        fail("an unknown value", at)
    end
    if value == math.huge or value == -math.huge then fail("a number out of range", at) end
    return value, at + #digits
end

-- The value of a text, or nil and why not. A null member of an object is left out of it; `json.null` elsewhere.
function json.decode(text)
    local _, valid = json.utf8(text)
    if not valid then return nil, "json: not UTF-8" end
    local done, value, at = pcall(read, text, skip(text, 1), 1)
    if not done then return nil, value end
    if skip(text, at) <= #text then return nil, ("json: more after the value at byte %d"):format(at) end
    return value
end

return json
