-- A small strict JSON codec. Lua has one kind of table, JSON has two: what may be an empty list is made with
-- `json.list`, every other empty table is an object. Nothing that `encode` returns breaks a reader of JSON lines: NaN
-- and infinity become null, bytes that are not UTF-8 become "?", and no line break is ever within a value.
local json = { null = {} }
local LIST, MAX_DEPTH = {}, 32
function json.list(items) return setmetatable(items or {}, LIST) end

-- The forms of one character in UTF-8 (overlong ones and surrogates are not among them).
local CHARACTERS = {
    "^[%z\1-\127]+", "^[\194-\223][\128-\191]", "^\224[\160-\191][\128-\191]", "^[\225-\236\238\239][\128-\191][\128-\191]",
    "^\237[\128-\159][\128-\191]", "^\240[\144-\191][\128-\191][\128-\191]", "^\244[\128-\143][\128-\191][\128-\191]",
    "^[\241-\243][\128-\191][\128-\191][\128-\191]",
}

-- Text as valid UTF-8, each wrong byte replaced; the second result tells whether it was valid.
function json.utf8(text)
    if not text:find("[\128-\255]") then return text, true end
    local parts, at, valid = {}, 1, true
    while at <= #text do
        local stop
        for _, form in ipairs(CHARACTERS) do stop = stop or select(2, text:find(form, at)) end
        parts[#parts + 1] = stop and text:sub(at, stop) or "?"
        valid, at = valid and stop ~= nil, (stop or at) + 1
    end
    return table.concat(parts), valid
end
local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
local function quoted(text)
    local escaped = json.utf8(text):gsub('[%c"\\]', function(char)
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
    local kind, first = type(value), true
    local function comma(text) out[#out + 1] = (first and "" or ",") .. text; first = false end
    if depth > MAX_DEPTH then error("json: too deep", 0) end
    if kind == "string" then out[#out + 1] = quoted(value)
    elseif kind == "number" then out[#out + 1] = number(value)
    elseif kind == "boolean" then out[#out + 1] = tostring(value)
    elseif value == nil or value == json.null then out[#out + 1] = "null"
    elseif kind ~= "table" then error("json: can't write a " .. kind, 0)
    elseif getmetatable(value) == LIST then
        out[#out + 1] = "["
        for _, item in ipairs(value) do comma(""); write(item, out, depth + 1) end
        out[#out + 1] = "]"
    else
        local keys = {}
        for key in pairs(value) do keys[#keys + 1] = key end
        table.sort(keys)
        out[#out + 1] = "{"
        for _, key in ipairs(keys) do comma(quoted(key) .. ":"); write(value[key], out, depth + 1) end
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
    return code < 0x80 and string.char(code) or code < 0x800 and string.char(192 + math.floor(code / 64), low(0))
        or code < 0x10000 and string.char(224 + math.floor(code / 4096), low(6), low(0))
        or string.char(240 + math.floor(code / 2 ^ 18), low(12), low(6), low(0))
end

local function fail(what, at) error(("json: %s at byte %d"):format(what, at), 0) end
local function read_string(text, at)
    local parts, start = {}, at + 1
    while true do
        local stop = text:find('["\\%z\1-\31]', start) or fail("a string without end", at)
        parts[#parts + 1] = text:sub(start, stop - 1)
        local char, escape = text:sub(stop, stop), text:sub(stop + 1, stop + 1)
        if char == '"' then return table.concat(parts), stop + 1 end
        if char ~= "\\" then fail("a control character", stop) end
        if escape == "u" then
            local code = tonumber(text:match("^%x%x%x%x", stop + 2) or fail("a bad escape", stop), 16)
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
local function skip(text, at) return text:find("[^ \t\r\n]", at) or #text + 1 end
local LITERALS = { ["true"] = true, ["false"] = false, null = json.null }
local read

-- Reads a list or an object from its opening bracket on; `member` reads one of its members into it.
local function members(text, at, close, found, member)
    at = skip(text, at + 1)
    if text:sub(at, at) == close then return found, at + 1 end
    while true do
        at = skip(text, member(skip(text, at)))
        local char = text:sub(at, at)
        if char == close then return found, at + 1 end
        at = char == "," and at + 1 or fail("a missing comma", at)
    end
end

function read(text, at, depth)
    local char, found = text:sub(at, at), nil
    if depth > MAX_DEPTH then fail("too deep", at) end
    if char == '"' then return read_string(text, at) end
    if char == "[" then
        found = json.list()
        return members(text, at, "]", found, function(where)
            found[#found + 1], where = read(text, where, depth + 1)
            return where
        end)
    elseif char == "{" then
        found = {}
        return members(text, at, "}", found, function(where)
            if text:sub(where, where) ~= '"' then fail("a key that is no string", where) end
            local key, value
            key, where = read_string(text, where)
            where = skip(text, where)
            if text:sub(where, where) ~= ":" then fail("a missing colon", where) end
            value, where = read(text, skip(text, where + 1), depth + 1)
            if value ~= json.null then found[key] = value end
            return where
        end)
    end
    for word, value in pairs(LITERALS) do
        if text:sub(at, at + #word - 1) == word then return value, at + #word end
    end
    local whole, rest = text:match("^(%-?%d+)(%.?%d*[eE]?[+-]?%d*)", at)
    local fine = whole and not whole:find("^%-?0%d") and not rest:find("^%.%D") and rest ~= "."
    found = fine and tonumber(whole .. rest)
    if not found or math.abs(found) == math.huge then fail("an unknown value", at) end
    return found, at + #whole + #rest
end

-- The value of a text, or nil and why not. A null member of an object is left out of it; elsewhere it is `json.null`.
function json.decode(text)
    if not select(2, json.utf8(text)) then return nil, "json: not UTF-8" end
    local done, value, at = pcall(read, text, skip(text, 1), 1)
    if not done then return nil, value end
    if skip(text, at) <= #text then return nil, ("json: more after the value at byte %d"):format(at) end
    return value
end

return json
