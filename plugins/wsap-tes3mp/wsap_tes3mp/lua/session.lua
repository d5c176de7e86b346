-- The script protocol on top of a transport: lines of JSON, a token first, one connector at a time.
local session = {}
local LINE = 256 * 1024
local BACKLOG = 1024 * 1024  -- of answers that nobody reads; then the connection is closed
local WAITING = 4  -- connections that have not said hello yet
local HELLO_MS, IDLE_MS, LINES_A_POLL, CHUNKS_A_POLL = 5000, 30000, 64, 16

-- A session: `poll()` moves bytes and answers requests, `emit(event)` tells the connector something, `close()` ends it.
-- `serve(request)` returns what an operation answers, or refuses.
function session.new(parts)
    local json, listener, clock, log = parts.json, parts.listener, parts.clock, parts.log
    local peers, current, connections, self = {}, nil, 0, {}
    local function since(moment) return (clock() - moment) % 2 ^ 32 end
    local function drop(peer)
        peer.closed = true
        pcall(peer.wire.close)
        if current == peer then log("the connector has gone") end
        current = current ~= peer and current or nil
    end
    local function flush(peer)
        local bytes, at, count, done = table.concat(peer.out), 1, 1, true
        while at <= #bytes and count ~= 0 and not peer.closed do
            done, count = pcall(peer.wire.send, bytes:sub(at, at + 65535))
            if not done or not count then return drop(peer) end
            at = at + count
        end
        peer.out, peer.waiting = { bytes:sub(at) }, #bytes - at + 1
        if peer.waiting > BACKLOG and not peer.closed then drop(peer) end
    end
    local function send(peer, message)
        local done, text = pcall(json.encode, message)
        if not done or #text >= LINE then
            text = json.encode({ re = message.re, error = { code = "INTERNAL", message = "the answer can't be sent" } })
        end
        peer.out[#peer.out + 1], peer.waiting = text .. "\n", peer.waiting + #text + 1
    end
    local function refuse(peer, why) send(peer, { refused = why }); flush(peer); drop(peer) end
    local function greet(peer, message)
        local hello = type(message) == "table" and message.hello
        if type(hello) ~= "table" or hello.token ~= parts.token then return refuse(peer, "token") end
        if hello.version ~= 1 then return refuse(peer, "version") end
        if current and since(current.heard) < IDLE_MS then return refuse(peer, "busy") end
        if current then drop(current) end
        current, connections, peer.greeted = peer, connections + 1, true
        log("a connector is here, connection " .. connections)
        send(peer, { welcome = { boot = parts.boot, connection = connections, version = 1, server = parts.server,
            script = parts.script } })
        parts.greeted()
    end
    local function answer(peer, line)
        local message, why = json.decode(line)
        if not peer.greeted then return greet(peer, message) end
        if type(message) ~= "table" or type(message.op) ~= "string" then
            return send(peer, { re = json.null, error = { code = "MALFORMED", message = why or "no request with an op" } })
        end
        local reply = { re = message.id == nil and json.null or message.id }
        local done, result = parts.try(parts.serve, message)
        if done then reply.ok = result
        elseif type(result) == "table" then reply.error = { code = result.code, message = result.message }
        else
            log("operation " .. message.op:sub(1, 40) .. " failed: " .. result)
            reply.error = { code = "INTERNAL", message = "the script failed; the server's log says why" }
        end
        send(peer, reply)
    end
    local function lines(peer)
        local at, stop = 1, peer.into:find("\n", 1, true)
        for _ = 1, LINES_A_POLL do
            if not stop or peer.closed then break end
            if stop - at >= LINE then return refuse(peer, "line too long") end
            answer(peer, peer.into:sub(at, stop - 1))
            at, stop = stop + 1, peer.into:find("\n", stop + 1, true)
        end
        peer.into = peer.into:sub(at)
        return stop ~= nil
    end
    local function read(peer)
        for _ = 1, CHUNKS_A_POLL do
            if #peer.into >= 2 * LINE or peer.ended then break end
            local done, bytes, closed = pcall(peer.wire.receive)
            peer.ended = not done or (not bytes and closed)
            if not done or not bytes then break end
            peer.into, peer.heard = peer.into .. bytes, clock()
        end
        if lines(peer) or peer.closed then return end
        if #peer.into >= LINE then return refuse(peer, "line too long") end
        if peer.ended or (not peer.greeted and since(peer.since) > HELLO_MS) then drop(peer) end
    end
    function self.poll()
        while #peers <= WAITING do
            local done, wire = pcall(listener.accept)
            if not done or not wire then break end
            peers[#peers + 1] = { wire = wire, into = "", out = {}, waiting = 0, since = clock(), heard = clock() }
        end
        for _, peer in ipairs(peers) do
            if not peer.closed then read(peer) end
            flush(peer)
        end
        for index = #peers, 1, -1 do if peers[index].closed then table.remove(peers, index) end end
    end
    function self.connected() return current ~= nil end
    function self.emit(event) if current then send(current, event) end end
    function self.close()
        for _, peer in ipairs(peers) do drop(peer) end
        pcall(listener.close)
    end
    return self
end

return session
