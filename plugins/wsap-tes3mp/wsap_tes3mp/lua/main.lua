-- WSAP in a TES3MP 0.8.1 server. To install: copy this folder to server/scripts/custom/wsap, set a token in its
-- settings.lua, and add one line to server/scripts/customScripts.lua:
--
--     require("custom.wsap.main")
--
-- Nothing here may raise an error into the server, which would end it: every entry is guarded.
if WsapTick then return end  -- loaded already

local here = (...):match("^(.*)[./][^./]+$")
local missing
-- Loads a file of this folder. An error in one, such as a typo in settings.lua, must not leave this file.
local function part(name)
    local fine, found = pcall(require, here .. "." .. name)
    if fine and type(found) == "table" then return found end
    local why = fine and "it returns no table" or tostring(found):gsub("%s+", " ")
    missing = missing or ("not started: %s.lua can't be loaded: %s"):format(name, why):gsub("%z", "?"):sub(1, 900)
    return {}
end
local json, api, transport, sessions, lib, verbs, settings = part("json"), part("api"), part("transport"),
    part("session"), part("world"), part("commands"), part("settings")
if missing then return pcall(api.LogMessage or print, 1, "[wsap] " .. missing) end
local SCRIPT, POLL_MS, SCAN_MS = "1.0", 50, 500
local session, commands, world, timer
local scanned, agents_text, watched, turn, errors = 0, nil, {}, nil, 0

local function clock() return api.GetMillisecondsSinceServerStart() end
local function log(text)
    pcall(api.LogMessage, 1, "[wsap] " .. json.utf8(tostring(text)):gsub("%z", "?"):sub(1, 900))
end
-- Calls `action` so that no error leaves it; of very many errors not each one is logged.
local function guarded(action, ...)
    local done, problem = api.try(action, ...)
    errors = done and errors or errors + 1
    if done or errors > 100 and errors % 1000 > 0 then return end
    log(("error %d: %s"):format(errors, type(problem) == "table" and tostring(problem.message) or problem))
end

local OPERATIONS = {
    ping = function() return { time = clock() } end,
    agents = function() return { agents = world.agents() } end,
    perceive = function(request)
        local facts = world.facts(world.find(request.agent))
        watched[request.agent] = facts.sequence
        return facts
    end,
    command = function(request) return commands.execute(request) end,
    outcome = function(request) return commands.outcome(request.command_id or "") end,
    join = function(request)
        local fine = type(request.agent) == "string" and #request.agent <= 200 and type(request.name) == "string"
        if not fine then api.refuse("BAD_REQUEST", "join takes agent and name") end
        return world.join(request.agent, request.name, request.embodiment, request.host)
    end,
    leave = function(request) return world.leave(request.agent, request.mode) end,
    respawn = function(request) return world.respawn(request.agent) end,
}

-- Tells the connector when there are other agents, and when one that it has perceived would perceive something else.
local function scan()
    local count = 1
    for _ in pairs(watched) do count = count + 1 end
    if (clock() - scanned) % 2 ^ 32 < SCAN_MS / count then return end
    scanned, turn = clock(), next(watched, watched[turn] and turn or nil)
    local text = not turn and json.encode(world.agents())  -- once around
    local found, facts = pcall(function() return world.facts(world.find(turn)) end)
    if text and text ~= (agents_text or text) then session.emit({ event = "agents" }) end
    agents_text = text or agents_text
    if found and watched[turn] ~= facts.sequence then
        watched[turn] = facts.sequence
        session.emit({ event = "changed", agent = turn, sequence = facts.sequence })
    end
end

local function step()
    session.poll(); commands.tick()
    if session.connected() then scan() end
end

-- The server calls a timer by the name of a global function. This one is never freed and never made anew, since both
-- break the server's list of timers; it winds itself up again whatever happens.
function WsapTick() guarded(step); guarded(api.RestartTimer, timer, POLL_MS) end

local function serve(request)
    return (OPERATIONS[request.op] or api.refuse("BAD_REQUEST", "there is no such operation"))(request)
end
local function start()
    if type(settings.token) ~= "string" or #settings.token < 8 then
        return log("not started: set a token of at least 8 characters in custom/wsap/settings.lua")
    end
    local listener, how = transport.open(settings)
    if not listener then return log("not started: " .. how) end
    local boot = ("%x-%x-%s"):format(os.time(), clock(), tostring({}):gsub("%W", ""):sub(-8))
    local parts = { api = api, json = json, settings = settings, clock = clock, log = log, boot = boot, lib = lib,
        listener = listener, serve = serve, try = api.try, token = settings.token, server = api.GetServerVersion(),
        script = SCRIPT, greeted = function() watched, agents_text = {}, nil end }
    function parts.emit(event) session.emit(event) end
    parts.world = lib.new(parts)
    world, commands, session = parts.world, verbs.new(parts), sessions.new(parts)
    timer = api.CreateTimer("WsapTick", POLL_MS); api.StartTimer(timer)
    log(("boot %s listens by %s, %s"):format(boot, how, tostring(listener.port or listener.folder)))
end

-- What the server's events mean for agents. Their arguments come from clients.
local function noted(kind) return function(pid, ...) commands.note(kind, pid, ...) end end
local function fight(pid) world.fought[world.agent_of(pid) or ""] = clock() end
local function touched(pid, _, objects)
    for id in pairs(type(objects) == "table" and objects or {}) do commands.note("touched", pid, id) end
end

local EVENTS = {
    OnPlayerCellChange = noted("cell"), OnPlayerEquipment = noted("equipment"), OnPlayerInventory = noted("inventory"),
    OnPlayerItemUse = noted("used"), OnPlayerJournal = noted("told"), OnPlayerTopic = noted("told"),
    OnObjectDelete = touched, OnDoorState = touched, OnContainer = touched,
    OnConsoleCommand = function(pid, _, text) commands.note("console", pid, text) end,
    OnObjectActivate = function(pid, _, objects)
        for id, object in pairs(objects) do commands.note("activated", pid, id, object.activatingUniqueIndex) end
    end,
    OnObjectDialogueChoice = function(pid, _, objects)
        local agent, id, object = world.agent_of(pid), next(objects)
        if agent and id then world.talked[agent] = { entity = id, topic = object.dialogueTopic, at = clock() } end
    end,
    OnObjectHit = function(pid, _, objects, players)
        for id, object in pairs(objects) do
            commands.note("hit", pid, id, object.hittingUniqueIndex)
            if object.hittingPid then fight(object.hittingPid) end
        end
        for target in pairs(players or {}) do fight(target) end
    end,
}

for event, action in pairs(EVENTS) do
    customEventHooks.registerHandler(event, function(_, ...) if session then guarded(action, ...) end end)
end
customEventHooks.registerHandler("OnServerPostInit", function() guarded(start) end)
customEventHooks.registerHandler("OnServerExit", function() if session then guarded(session.close) end end)
