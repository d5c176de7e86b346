-- How bytes come and go: LuaSocket where the server has it, else the system's sockets through FFI, else a mailbox of
-- files. None of them ever blocks.
--
-- A listener has `accept() -> connection or nil` and `close()`. A connection has `receive() -> bytes, or nil and
-- whether it is closed`, `send(bytes) -> how many were taken, or nil where it is closed`, and `close()`.
local transport = {}
local CHUNK = 16384

function transport.luasocket(settings)
    local found, socket = pcall(require, "socket")
    if not found or type(socket) ~= "table" or not socket.bind then return nil, "there is no LuaSocket" end
    local server, why = socket.bind("127.0.0.1", settings.port)
    if not server then return nil, why end
    server:settimeout(0)
    local function accept()
        local client = server:accept()
        if not client then return nil end
        client:settimeout(0)
        return {
            receive = function()
                local bytes, problem, part = client:receive(CHUNK)
                if (bytes or part or "") ~= "" then return bytes or part end
                return nil, problem ~= "timeout"
            end,
            send = function(bytes)
                local last, problem, partial = client:send(bytes)
                return last or (problem == "timeout" and (partial or 0)) or nil
            end,
            close = function() client:close() end,
        }
    end
    local _, port = server:getsockname()
    return { port = tonumber(port), accept = accept, close = function() server:close() end }
end

-- Own names for the system's functions, since another script of the server may have declared them differently.
local SHARED = [[
struct wsap_address { unsigned short family; unsigned short port; unsigned int host; char zero[8]; };
wsap_handle wsap_socket(int, int, int) __asm__("socket");
int wsap_bind(wsap_handle, const void *, int) __asm__("bind");
int wsap_listen(wsap_handle, int) __asm__("listen");
int wsap_getsockname(wsap_handle, void *, int *) __asm__("getsockname");
int wsap_setsockopt(wsap_handle, int, int, const void *, int) __asm__("setsockopt");
]]
local LINUX = "typedef int wsap_handle;" .. SHARED .. [[
int wsap_accept(int, void *, void *, int) __asm__("accept4");
intptr_t wsap_recv(int, void *, size_t, int) __asm__("recv");
intptr_t wsap_send(int, const void *, size_t, int) __asm__("send");
int wsap_close(int) __asm__("close");
]]
local WINDOWS = "typedef intptr_t wsap_handle;" .. SHARED .. [[
int wsap_startup(unsigned short, void *) __asm__("WSAStartup");
int wsap_error(void) __asm__("WSAGetLastError");
intptr_t wsap_accept(intptr_t, void *, void *) __asm__("accept");
int wsap_ioctl(intptr_t, long, unsigned long *) __asm__("ioctlsocket");
int wsap_recv(intptr_t, void *, int, int) __asm__("recv");
int wsap_send(intptr_t, const void *, int, int) __asm__("send");
int wsap_close(intptr_t) __asm__("closesocket");
]]
-- What differs between the systems: the library, its constants, and how "try again later" is told.
local function system(ffi)
    local windows = ffi.os == "Windows"
    if not windows and ffi.os ~= "Linux" then return nil end
    if not pcall(ffi.typeof, "struct wsap_address") then ffi.cdef(windows and WINDOWS or LINUX) end
    if not windows then  -- SO_REUSEADDR; a socket that never blocks; MSG_NOSIGNAL: a lost connection ends no server
        return { C = ffi.C, level = 1, option = 2, kind = 0x801, flags = 0x4000,
            accept = function(handle) return ffi.C.wsap_accept(handle, nil, nil, 0x800) end,
            again = function() return ffi.errno() == 11 or ffi.errno() == 4 end,
            unblock = function(handle) return handle end }
    end
    local C = ffi.load("ws2_32")
    C.wsap_startup(0x0202, ffi.new("char[512]"))
    local function unblock(handle)
        if tonumber(handle) ~= -1 then C.wsap_ioctl(handle, -0x7ffb9982, ffi.new("unsigned long[1]", 1)) end  -- FIONBIO
        return handle
    end
    return { C = C, level = 0xffff, option = -5, kind = 1, flags = 0, unblock = unblock,  -- SO_EXCLUSIVEADDRUSE
        accept = function(handle) return unblock(C.wsap_accept(handle, nil, nil)) end,
        again = function() return C.wsap_error() == 10035 end }
end

function transport.ffi(settings)
    local found, ffi = pcall(require, "ffi")
    local sys = found and system(ffi)
    if not sys then return nil, "there is no FFI for Linux or Windows" end
    local C, buffer = sys.C, ffi.new("char[?]", CHUNK)
    local function closer(handle)
        return function() handle = handle and C.wsap_close(handle) and nil end
    end
    local server = sys.unblock(C.wsap_socket(2, sys.kind, 0))
    C.wsap_setsockopt(server, sys.level, sys.option, ffi.new("int[1]", 1), 4)
    local function swapped(port) return math.floor(port / 256) + port % 256 * 256 end
    local address = ffi.new("struct wsap_address", { family = 2, port = swapped(settings.port) })
    ffi.copy(ffi.cast("char *", address) + 4, "\127\0\0\1", 4)
    if C.wsap_bind(server, address, 16) ~= 0 or C.wsap_listen(server, 4) ~= 0 then
        return nil, C.wsap_close(server) and ("port %d of 127.0.0.1 is taken"):format(settings.port)
    end
    C.wsap_getsockname(server, address, ffi.new("int[1]", 16))
    local function accept()
        local client = sys.accept(server)
        if tonumber(client) == -1 then return nil end
        return {
            receive = function()
                local count = tonumber(C.wsap_recv(client, buffer, CHUNK, 0))
                if count > 0 then return ffi.string(buffer, count) end
                return nil, count == 0 or not sys.again()
            end,
            send = function(bytes)
                local count = tonumber(C.wsap_send(client, bytes, #bytes, sys.flags))
                if count < 0 then return sys.again() and 0 or nil end
                return count
            end,
            close = closer(client),
        }
    end
    return { port = swapped(address.port), accept = accept, close = closer(server) }
end

local UNREAD = 64  -- so many files may lie unread before no more are written
local function take(path)
    local file = io.open(path, "rb")
    local bytes = file and (file:read("*a") or "")
    if file then file:close(); os.remove(path) end
    return bytes
end

-- A connector makes FOLDER/hello with a name of its own; its bytes come as FOLDER/NAME.in.1, .2, ..., the answers go
-- to FOLDER/NAME.out.1, .2, ...; an empty file closes. Each file appears by renaming and is removed by who read it.
function transport.mailbox(settings)
    local folder = settings.mailbox
    local probe = type(folder) == "string" and folder ~= "" and io.open(folder .. "/probe", "wb")
    if not (probe and probe:close()) then return nil, "there is no mailbox folder that can be written" end
    for _, name in ipairs({ "/probe", "/hello" }) do os.remove(folder .. name) end  -- a hello was for the last boot
    local function connection(name)
        local into, out, open = 1, 1, true
        local function path(kind, number) return ("%s/%s.%s.%d"):format(folder, name, kind, number) end
        local function post(bytes)
            local file = io.open(path("new", out), "wb")
            if not file then return nil end
            file:write(bytes); file:close()
            out = out + 1
            return os.rename(path("new", out - 1), path("out", out - 1)) and #bytes or nil
        end
        return {
            receive = function()
                local bytes = take(path("in", into))
                into = bytes and into + 1 or into
                if bytes and bytes ~= "" then return bytes end
                return nil, bytes ~= nil
            end,
            send = function(bytes)
                local unread = out > UNREAD and io.open(path("out", out - UNREAD), "rb")
                if not unread then return post(bytes) end
                return unread:close() and 0
            end,
            close = function() open = open and post("") and false end,
        }
    end
    return { folder = folder, close = function() end, accept = function()
        local name = (take(folder .. "/hello") or ""):match("^(%w+)%s*$")
        return name and #name <= 64 and connection(name) or nil
    end }
end

-- The first transport that works and its name, or nil and why each of them does not.
function transport.open(settings)
    local names = settings.transport == "auto" and { "luasocket", "ffi", "mailbox" } or { settings.transport }
    local why = {}
    for _, name in ipairs(names) do
        local done, listener, problem = pcall(transport[name] or error, settings)
        if done and listener then return listener, name end
        why[#why + 1] = ("%s: %s"):format(tostring(name), tostring(done and problem or listener))
    end
    return nil, table.concat(why, "; ")
end

return transport
