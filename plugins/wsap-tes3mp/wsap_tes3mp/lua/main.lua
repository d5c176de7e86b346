-- WSAP in a TES3MP 0.8.1 server. To install: copy this folder to server/scripts/custom/wsap, set a token in its
-- settings.lua, and add to server/scripts/customScripts.lua:
--
--     require("custom.wsap.main")
--
-- Nothing here may raise an error into the server, which would end it: every entry is guarded.
local here = (...):match("^(.*)[./][^./]+$")
local function part(name) return require(here .. "." .. name) end

local json, api, transport, sessions, lib, verbs =
    part("json"), part("api"), part("transport"), part("session"), part("world"), part("commands")
local settings = part("settings")

local SCRIPT, POLL_MS, SCAN_MS = "1.0", 50, 500
local session, commands, world, timer
local scanned, agents_text, reported = 0, "", {}

local function log(text)
    pcall(api.LogMessage, 1, "[wsap] " .. json.utf8(tostring(text)):gsub("%z", "?"):sub(1, 2000))
end

-- Calls `action` so that no error leaves it; each error is logged once in a while, not twenty times a second.
local function guarded(action, ...)
    local arguments, count = { ... }, select("#", ...)
    local done, result = xpcall(function() return action(unpack(arguments, 1, count)) end, debug.traceback)
    if done then return result end
    local text = tostring(result)
    local times = (reported[text] or 0) + 1
    reported[text] = times
    if times == 1 or times % 1000 == 0 then log(("error, %d times: %s"):format(times, text)) end
end

local function clock() return api.GetMillisecondsSinceServerStart() end

local watched = {}  -- agents whose changes the connector is told

local function with_body(request, action)
    local body, code, message = world.find(request.agent)
    if not body then return nil, code, message end
    return action(body)
end

local OPERATIONS = {
    ping = function() return { time = clock() } end,
    agents = function() return { agents = world.agents() } end,
    perceive = function(request)
        return with_body(request, function(body)
            watched[body.agent] = true
            return world.facts(body)
        end)
    end,
    command = function(request) return commands.execute(request) end,
    outcome = function(request) return commands.outcome(request.command_id) end,
    join = function(request)
        if type(request.agent) ~= "string" or type(request.name) ~= "string" then return nil, "BAD_REQUEST", "agent and name" end
        return world.join(request.agent, request.name, request.embodiment, request.host)
    end,
    leave = function(request) return world.leave(request.agent, request.mode) end,
    respawn = function(request) return world.respawn(request.agent) end,
}

local function serve(request)
    local operation = OPERATIONS[request.op]
    if not operation then return nil, "UNKNOWN_OP", "there is no operation " .. request.op:sub(1, 40) end
    return operation(request)
end

local function scan()
    if not session.connected() then return end
    local text = json.encode(world.agents())
    if text ~= agents_text then session.emit({ event = "agents" }) end
    agents_text = text
    for agent in pairs(watched) do
        local body = world.find(agent)
        local sequence = body and world.changed(body)
        if sequence then session.emit({ event = "changed", agent = agent, sequence = sequence }) end
    end
end

local function step()
    session.poll()
    commands.tick()
    if (clock() - scanned) % 2 ^ 32 >= SCAN_MS then
        scanned = clock()
        scan()
    end
end

-- The server calls timers by the name of a global function. This one is never freed and never made anew, since both
-- break the server's list of timers; it winds itself up again whatever happens.
function WsapTick()
    guarded(step)
    guarded(api.RestartTimer, timer, POLL_MS)
end

local function boot_id()
    local address = tostring({}):gsub("%W", ""):sub(-8)
    return ("%x-%x-%s"):format(os.time(), clock() % 65536, address)
end

local function start()
    if type(settings.token) ~= "string" or #settings.token < 8 then
        return log("not started: set a token of at least 8 characters in custom/wsap/settings.lua")
    end
    local listener, how = transport.open(settings)
    if not listener then return log("not started: " .. tostring(how)) end
    local boot = boot_id()
    local shared = { api = api, json = json, settings = settings, clock = clock, log = log, boot = boot, lib = lib,
        emit = function(event) session.emit(event) end }
    world = lib.new(shared)
    shared.world = world
    commands = verbs.new(shared)
    session = sessions.new({ json = json, listener = listener, clock = clock, log = log, boot = boot, serve = serve,
        token = settings.token, server = api.GetServerVersion(), script = SCRIPT,
        greeted = function() watched, agents_text = {}, "" end })
    timer = api.CreateTimer("WsapTick", POLL_MS)
    api.StartTimer(timer)
    log(("boot %s listens by %s, %s"):format(boot, how, tostring(listener.port or listener.folder)))
end

local function agent_of(pid)
    local player = Players[pid]
    for _, agent in ipairs(player and world.agents() or {}) do
        local body = world.find(agent.agent)
        if body and body.pid == pid and body.embodiment == "avatar" then return agent.agent end
    end
end

local function fight(pid)
    local agent = agent_of(pid)
    if agent then world.fought[agent] = clock() end
end

-- What the server's events mean for agents. Their arguments come from clients.
local EVENTS = {
    OnPlayerCellChange = function(pid) commands.note("cell", pid) end,
    OnPlayerEquipment = function(pid) commands.note("equipment", pid) end,
    OnPlayerInventory = function(pid) commands.note("inventory", pid) end,
    OnPlayerItemUse = function(pid, item) commands.note("used", pid, item) end,
    OnPlayerJournal = function(pid) commands.note("told", pid) end,
    OnPlayerTopic = function(pid) commands.note("told", pid) end,
    OnConsoleCommand = function(pid, _, text) commands.note("console", pid, text) end,
    OnObjectActivate = function(pid, _, objects)
        for id, object in pairs(objects) do
            commands.note("activated", pid, id, object.activatingUniqueIndex)
        end
    end,
    OnObjectDialogueChoice = function(pid, _, objects)
        for id, object in pairs(objects) do
            local agent = agent_of(pid)
            if agent then world.talked[agent] = { entity = id, topic = object.dialogueTopic, at = clock() } end
        end
    end,
    OnObjectHit = function(pid, _, objects, players)
        for id, object in pairs(objects) do
            commands.note("hit", pid, id, object.hittingUniqueIndex)
            if object.hittingPid then fight(object.hittingPid) end
        end
        for target in pairs(players or {}) do fight(target) end
    end,
}
for _, event in ipairs({ "OnObjectDelete", "OnDoorState", "OnContainer" }) do
    EVENTS[event] = function(pid, _, objects)
        for id in pairs(objects) do commands.note("touched", pid, id) end
    end
end

for event, action in pairs(EVENTS) do
    customEventHooks.registerHandler(event, function(_, ...)
        if session then guarded(action, ...) end
    end)
end
customEventHooks.registerHandler("OnServerPostInit", function() guarded(start) end)
customEventHooks.registerHandler("OnServerExit", function()
    if session then guarded(session.close) end
end)
