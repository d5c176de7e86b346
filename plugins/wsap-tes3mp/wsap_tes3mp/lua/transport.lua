-- How bytes come and go: LuaSocket where the server has it, else the system's sockets through FFI, else a mailbox of
-- files. All of them never block.
--
-- A listener has `accept() -> connection or nil` and `close()`. A connection has `receive() -> bytes, or nil and
-- whether it is closed`, `send(bytes) -> how many were taken, or nil where it is closed`, and `close()`.
local transport = {}

local CHUNK = 16384

-- LuaSocket ----------------------------------------------------------------------------------------------------------

function transport.luasocket(settings)
    local found, socket = pcall(require, "socket")
    if not found or type(socket) ~= "table" or not socket.bind then return nil, "there is no LuaSocket" end
    local server, why = socket.bind("127.0.0.1", settings.port)
    if not server then return nil, "LuaSocket can't listen: " .. tostring(why) end
    server:settimeout(0)
    local listener = { port = tonumber((select(2, server:getsockname()))) }
    function listener.accept()
        local client = server:accept()
        if not client then return nil end
        client:settimeout(0)
        return {
            receive = function()
                local bytes, problem, part = client:receive(CHUNK)
                bytes = bytes or part
                if bytes and #bytes > 0 then return bytes end
                return nil, problem ~= "timeout"
            end,
            send = function(bytes)
                local last, problem, partial = client:send(bytes)
                if last then return last end
                if problem == "timeout" then return partial or 0 end
                return nil
            end,
            close = function() client:close() end,
        }
    end
    function listener.close() server:close() end
    return listener
end

-- Sockets through FFI ------------------------------------------------------------------------------------------------

-- Own names for the system's functions, since another script of the server may have declared them differently.
local DECLARATIONS = [[
struct wsap_address { unsigned short family; unsigned short port; unsigned int host; char zero[8]; };
intptr_t wsap_socket(int, int, int) __asm__("socket");
int wsap_bind(intptr_t, const void *, int) __asm__("bind");
int wsap_listen(intptr_t, int) __asm__("listen");
int wsap_getsockname(intptr_t, void *, int *) __asm__("getsockname");
int wsap_setsockopt(intptr_t, int, int, const void *, int) __asm__("setsockopt");
]]
local POSIX = [[
int wsap_accept(int, void *, void *, int) __asm__("accept4");
intptr_t wsap_recv(int, void *, size_t, int) __asm__("recv");
intptr_t wsap_send(int, const void *, size_t, int) __asm__("send");
int wsap_close(int) __asm__("close");
]]
local WINDOWS = [[
int wsap_startup(unsigned short, void *) __asm__("WSAStartup");
int wsap_error(void) __asm__("WSAGetLastError");
intptr_t wsap_accept(intptr_t, void *, void *) __asm__("accept");
int wsap_ioctl(intptr_t, long, unsigned long *) __asm__("ioctlsocket");
int wsap_recv(intptr_t, void *, int, int) __asm__("recv");
int wsap_send(intptr_t, const void *, int, int) __asm__("send");
int wsap_close(intptr_t) __asm__("closesocket");
]]

local declared = false

-- What differs between the systems: the library, its constants, and what "try again later" is called.
local function system(ffi)
    local windows = ffi.os == "Windows"
    if not windows and ffi.os ~= "Linux" then return nil, "FFI sockets are for Linux and Windows" end
    if not declared then ffi.cdef(DECLARATIONS .. (windows and WINDOWS or POSIX)) end
    declared = true
    if not windows then
        local AGAIN, INTERRUPTED, NONBLOCK, NOSIGNAL = 11, 4, 0x800, 0x4000
        return {
            C = ffi.C, level = 1, option = 2, kind = 1 + NONBLOCK,  -- SO_REUSEADDR: a restarted server listens again
            accept = function(server) return ffi.C.wsap_accept(server, nil, nil, NONBLOCK) end,
            flags = NOSIGNAL,  -- else the end of a connection would end the server
            again = function() local code = ffi.errno() return code == AGAIN or code == INTERRUPTED end,
        }
    end
    local C = ffi.load("ws2_32")
    C.wsap_startup(0x0202, ffi.new("char[512]"))
    local function unblock(handle)
        if tonumber(handle) ~= -1 then C.wsap_ioctl(handle, -0x7ffb9982, ffi.new("unsigned long[1]", 1)) end
        return handle
    end
    return {
        C = C, level = 0xffff, option = -5, kind = 1, unblock = unblock,  -- SO_EXCLUSIVEADDRUSE: nobody else listens
        accept = function(server) return unblock(C.wsap_accept(server, nil, nil)) end,
        flags = 0, again = function() return C.wsap_error() == 10035 end,
    }
end

local function ffi_connection(ffi, sys, handle)
    local buffer = ffi.new("char[?]", CHUNK)
    local open = true
    return {
        receive = function()
            local count = tonumber(sys.C.wsap_recv(handle, buffer, CHUNK, 0))
            if count > 0 then return ffi.string(buffer, count) end
            return nil, count == 0 or not sys.again()
        end,
        send = function(bytes)
            local count = tonumber(sys.C.wsap_send(handle, bytes, #bytes, sys.flags))
            if count >= 0 then return count end
            if sys.again() then return 0 end
            return nil
        end,
        close = function()
            if open then sys.C.wsap_close(handle) end
            open = false
        end,
    }
end

function transport.ffi(settings)
    local found, ffi = pcall(require, "ffi")
    if not found then return nil, "there is no FFI" end
    local sys, why = system(ffi)
    if not sys then return nil, why end
    local handle = sys.C.wsap_socket(2, sys.kind, 0)
    if tonumber(handle) == -1 then return nil, "the system gives no socket" end
    if sys.unblock then sys.unblock(handle) end
    sys.C.wsap_setsockopt(handle, sys.level, sys.option, ffi.new("int[1]", 1), 4)
    local address = ffi.new("struct wsap_address", { family = 2 })
    address.port = math.floor(settings.port / 256) + settings.port % 256 * 256
    ffi.copy(ffi.cast("char *", address) + 4, "\127\0\0\1", 4)
    if sys.C.wsap_bind(handle, address, 16) ~= 0 or sys.C.wsap_listen(handle, 4) ~= 0 then
        sys.C.wsap_close(handle)
        return nil, ("port %d of 127.0.0.1 is taken"):format(settings.port)
    end
    sys.C.wsap_getsockname(handle, address, ffi.new("int[1]", 16))
    local listener, open = { port = math.floor(address.port / 256) + address.port % 256 * 256 }, true
    function listener.accept()
        local client = sys.accept(handle)
        return tonumber(client) ~= -1 and ffi_connection(ffi, sys, client) or nil
    end
    function listener.close()
        if open then sys.C.wsap_close(handle) end
        open = false
    end
    return listener
end

-- A mailbox of files ---------------------------------------------------------------------------------------------------

local UNREAD = 64  -- so many files may lie unread before no more are written

local function take(path)
    local file = io.open(path, "rb")
    if not file then return nil end
    local bytes = file:read("*a") or ""
    file:close()
    os.remove(path)
    return bytes
end

-- A connector makes FOLDER/hello with a name of its own; its bytes come as FOLDER/NAME.in.1, .2, ..., the answers go
-- to FOLDER/NAME.out.1, .2, ...; an empty file closes. Each file appears by renaming and is removed by who read it.
function transport.mailbox(settings)
    local folder = settings.mailbox
    if type(folder) ~= "string" or folder == "" then return nil, "no mailbox folder is set" end
    local probe = io.open(folder .. "/probe", "wb")
    if not probe then return nil, "the mailbox folder can't be written: " .. folder end
    probe:close()
    os.remove(folder .. "/probe")
    os.remove(folder .. "/hello")  -- of a connector that met the server before
    local function connection(name)
        local into, out, open = 1, 1, true
        local function path(kind, number) return ("%s/%s.%s.%d"):format(folder, name, kind, number) end
        local function post(bytes)
            local file = io.open(path("new", out), "wb")
            if not file then return false end
            file:write(bytes)
            file:close()
            if not os.rename(path("new", out), path("out", out)) then return false end
            out = out + 1
            return true
        end
        return {
            receive = function()
                local bytes = take(path("in", into))
                if not bytes then return nil, false end
                into = into + 1
                if bytes == "" then return nil, true end
                return bytes
            end,
            send = function(bytes)
                local oldest = out > UNREAD and io.open(path("out", out - UNREAD), "rb")
                if oldest then
                    oldest:close()
                    return 0
                end
                return post(bytes) and #bytes or nil
            end,
            close = function()
                if open then post("") end
                open = false
            end,
        }
    end
    local listener = { folder = folder, close = function() end }
    function listener.accept()
        local name = (take(folder .. "/hello") or ""):match("^(%w+)%s*$")
        return name and #name <= 64 and connection(name) or nil
    end
    return listener
end

-- The first transport that works, or nil and why each of them does not.
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
