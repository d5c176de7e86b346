-- What agents can do, by embodiment, and what came of it: each command id is carried out at most once in a boot.
local commands = {}

local MEMORY = 20000  -- command ids in each of two generations
local LIFT = 24  -- a body is placed so much above the spot: it falls, so its client has to report a position
local NEAR, TALL = 256, 512
local AI = { CANCEL = 0, ACTIVATE = 1, COMBAT = 2, FOLLOW = 4, TRAVEL = 5 }
local TOPIC = 0

-- The only console commands there are. What goes into the quotes is refused unless it is a plain id.
local CONSOLE = { equip = 'equip "%s"', cast = 'cast "%s" "%s"' }

local function plain(id)
    return type(id) == "string" and #id > 0 and #id <= 64 and not id:find('[%c"\\;]') and not id:find("^%s*/")
end

function commands.new(parts)
    local api, json, world, lib, clock, emit, log =
        parts.api, parts.json, parts.world, parts.lib, parts.clock, parts.emit, parts.log
    local self = { boot = parts.boot }
    local running = {}  -- agent -> command
    local young, old, count, forgotten = {}, {}, 0, false

    local function recall(id) return young[id] or old[id] end

    local function remember(id, result)
        if not recall(id) then count = count + 1 end
        if count > MEMORY then
            forgotten = forgotten or next(old) ~= nil
            young, old, count = {}, young, 1
        end
        young[id] = result
        return result
    end

    local function finish(command, state, code, message)
        if running[command.agent] == command then running[command.agent] = nil end
        local body = world.find(command.agent)
        local seen, facts = pcall(function() return body and world.facts(body) end)
        local result = remember(command.id, { state = state, code = code, message = message,
            sequence = seen and facts and facts.sequence or nil })
        emit({ event = "outcome", command_id = command.id, state = state, code = code, message = message,
            sequence = result.sequence })
        return result
    end

    -- Sends the console command of a template to a client: on its player, or on an object. Servers kick a player whose
    -- client reports a command that is not in its queue.
    local function console(body, name, object, ...)
        for _, id in ipairs({ ... }) do
            if not plain(id) then return nil, "BAD_REQUEST", "an id has characters that no console command may have" end
        end
        local text = CONSOLE[name]:format(...)
        local queue = Players[body.pid].consoleCommandsQueued
        if queue then table.insert(queue, text) end
        api.ClearObjectList()
        api.SetObjectListPid(body.pid)
        api.SetObjectListCell(body.cell)
        api.SetObjectListConsoleCommand(text)
        if object then
            local ref, mp = lib.split(object)
            api.SetObjectRefNum(ref)
            api.SetObjectMpNum(mp)
        else api.SetPlayerAsObject(body.pid) end
        api.AddObject()
        api.SendConsoleCommand(false, false)
        return { seconds = 5, watch = function(kind, pid, data)
            return kind == "console" and pid == body.pid and data == text and "the game has run it"
        end }
    end

    local function object(body, entry)
        api.ClearObjectList()
        api.SetObjectListPid(body.pid)
        api.SetObjectListCell(entry.cell)
        if entry.pid then api.SetPlayerAsObject(entry.pid)
        else
            local ref, mp = lib.split(entry.id)
            api.SetObjectRefNum(ref)
            api.SetObjectMpNum(mp)
        end
    end

    -- Gives a companion an AI package; its cell's authority carries it out.
    local function ai(body, action, target)
        local ref, mp = lib.split(body.index)
        api.ClearActorList()
        api.SetActorListPid(body.pid)
        api.SetActorListCell(body.cell)
        api.SetActorRefNum(ref)
        api.SetActorMpNum(mp)
        api.SetActorAIAction(action)
        if target.pid then api.SetActorAITargetToPlayer(target.pid)
        elseif target.id then
            local target_ref, target_mp = lib.split(target.id)
            api.SetActorAITargetToObject(target_ref, target_mp)
        else api.SetActorAICoordinates(target.x, target.y, target.z) end
        api.SetActorAIRepetition(false)
        api.AddActor()
        api.SendActorAI(true, false)
    end

    local function entity(body, id)
        local entry = type(id) == "string" and world.entities(body.cell)[id]
        if not entry then return nil, "NO_ENTITY", "nothing with that id is near" end
        return entry
    end

    local function far(x, y, place)
        return math.sqrt((x - place.x) ^ 2 + (y - place.y) ^ 2)
    end

    -- Where `move_to` leads: an entity's place, or coordinates with what is missing filled in.
    local function destination(body, params)
        if params.target_entity_id ~= nil then
            local entry, code, message = entity(body, params.target_entity_id)
            if not entry then return nil, code, message end
            if not entry.x then return nil, "NO_PLACE", "the server does not know where that is" end
            return { cell = entry.cell, x = entry.x, y = entry.y, z = entry.z }
        end
        local place = { cell = params.target_cell, x = params.target_x, y = params.target_y, z = params.target_z }
        for _, key in ipairs({ "x", "y", "z" }) do
            if place[key] ~= nil and (type(place[key]) ~= "number" or math.abs(place[key]) > 1e7) then
                return nil, "BAD_REQUEST", "target_" .. key .. " is no coordinate"
            end
        end
        if place.cell ~= nil and (type(place.cell) ~= "string" or #place.cell > 100 or place.cell:find("%c")) then
            return nil, "BAD_REQUEST", "target_cell is no name of a cell"
        end
        if not place.x then return place.cell and place or nil, "BAD_REQUEST", "no target" end
        local outside = lib.grid(place.cell or body.cell)
        local there = lib.cell_at(place.x, place.y)
        if place.cell and outside and place.cell ~= there then
            return nil, "BAD_REQUEST", "these coordinates are in cell " .. there
        end
        place.cell = outside and there or place.cell or body.cell
        if not place.z then
            local best = place.cell == body.cell and world.facts(body) or nil
            for _, entry in pairs(world.entities(place.cell)) do
                if entry.z and (not best or far(place.x, place.y, entry) < far(place.x, place.y, best)) then best = entry end
            end
            if not best then return nil, "NO_HEIGHT", "give target_z: nothing there tells how high the ground is" end
            place.z = best.z
        end
        return place
    end

    local avatar, companion = {}, {}

    function avatar.move_to(body, params)
        local place, code, message = destination(body, params)
        if not place then return nil, code, message end
        local pid, arrived = body.pid, place.cell == body.cell
        if not arrived then
            api.SetCell(pid, place.cell)
            api.SendCell(pid)
        end
        local x, y, z
        if place.x then
            api.SetPos(pid, place.x, place.y, place.z + LIFT)
            api.SendPos(pid)
            x, y, z = api.GetPosX(pid), api.GetPosY(pid), api.GetPosZ(pid)
        end
        return { seconds = 10, unknown = "the player's client has not reported where it is", check = function()
            if not arrived then return nil end
            if not x then return "confirmed", "arrived in " .. place.cell end
            local now = { x = api.GetPosX(pid), y = api.GetPosY(pid), z = api.GetPosZ(pid) }
            if now.x == x and now.y == y and now.z == z then return nil end
            if far(place.x, place.y, now) <= NEAR and math.abs(now.z - place.z) <= TALL then
                return "confirmed", "arrived"
            end
            return "failed", "the game has put the body elsewhere", "ELSEWHERE"
        end, watch = function(kind, who)
            if kind == "cell" and who == pid then arrived = arrived or api.GetCell(pid) == place.cell end
        end }
    end

    function avatar.interact(body, params)
        local entry, code, message = entity(body, params.entity_id)
        if not entry then return nil, code, message end
        object(body, entry)
        api.SetObjectActivatingPid(body.pid)
        api.AddObject()
        api.SendObjectActivate(false, false)
        if entry.kind == "actor" then world.talked[body.agent] = { entity = entry.id, at = clock() } end
        return { seconds = 3, unknown = "sent to the game, which reports no effect of it", watch = function(kind, pid, data)
            if kind == "touched" and data == entry.id then return "it has changed" end
            return pid == body.pid and (kind == "cell" and "went through it" or kind == "inventory" and "the inventory has changed"
                or kind == "told" and "it has told something")
        end }
    end

    function avatar.use_item(body, params)
        if params.target_entity_id ~= nil then return nil, "UNSUPPORTED", "an avatar can't use an item on something" end
        local item
        for _, candidate in pairs(body.player.data.inventory or {}) do
            if type(candidate) == "table" and candidate.refId == params.item_id then item = candidate end
        end
        if not item then return nil, "NO_ITEM", "that is not in the inventory" end
        local plan, code, message
        if params.slot ~= nil then
            if type(params.slot) ~= "number" or params.slot > 18 then return nil, "BAD_REQUEST", "slot is 0 to 18" end
            api.EquipItem(body.pid, params.slot, item.refId, item.count, item.charge or -1, item.enchantmentCharge or -1)
            api.SendEquipment(body.pid)
            plan = { seconds = 5, watch = function() end }
        else
            plan, code, message = console(body, "equip", nil, item.refId)
            if not plan then return nil, code, message end
        end
        local ran = plan.watch
        plan.watch = function(kind, pid, data)
            if pid == body.pid and (kind == "equipment" or kind == "inventory" or kind == "used") then return "used" end
            return ran(kind, pid, data)
        end
        return plan
    end

    function avatar.combat_action(body, params)
        local spell = type(params.action_type) == "string" and params.action_type:match("^cast:(.+)$")
        if params.action_type == "cast" then spell = (body.player.data.miscellaneous or {}).selectedSpell end
        if not spell or spell == "" then
            return nil, "UNSUPPORTED", "an avatar can only cast (cast or cast:SPELL); the server can't make it swing a weapon"
        end
        local known = false
        for _, id in pairs(body.player.data.spellbook or {}) do known = known or id == spell end
        if not known then return nil, "NO_SPELL", "the character does not know that spell" end
        local entry, code, message = entity(body, params.target_entity_id)
        if not entry then return nil, code, message end
        world.fought[body.agent] = clock()
        return console(body, "cast", nil, spell, entry.ref_id)
    end

    function avatar.dialogue(body, params)
        local entry, code, message = entity(body, params.entity_id)
        if not entry then return nil, code, message end
        if type(params.topic) ~= "string" or not plain(params.topic) then
            return nil, "UNSUPPORTED", "dialogue goes by topic only, and a topic is plain text"
        end
        object(body, entry)
        api.SetObjectDialogueChoiceType(TOPIC)
        api.SetObjectDialogueChoiceTopic(params.topic)
        api.AddObject()
        api.SendObjectDialogueChoice(false, false)
        world.talked[body.agent] = { entity = entry.id, topic = params.topic, at = clock() }
        return { seconds = 3, unknown = "sent to the game, which reports no effect of it", watch = function(kind, pid)
            return kind == "told" and pid == body.pid and "it has told something"
        end }
    end

    function companion.move_to(body, params)
        local place, code, message = destination(body, params)
        if not place then return nil, code, message end
        if not place.x or (place.cell ~= body.cell and not lib.grid(place.cell)) then
            return nil, "UNSUPPORTED", "a companion walks to coordinates or an entity, not through doors"
        end
        local distance = far(place.x, place.y, world.facts(body))
        ai(body, AI.TRAVEL, { x = place.x, y = place.y, z = place.z })
        return { seconds = math.min(10 + distance / 80, 180), failed = "it has not got there in time", check = function()
            local now = world.entities(body.cell)[body.index]
            return now and now.x and far(place.x, place.y, now) <= NEAR / 2 and "confirmed" or nil, "arrived"
        end }
    end

    function companion.interact(body, params)
        local entry, code, message = entity(body, params.entity_id)
        if not entry then return nil, code, message end
        local follow = params.interaction_type == "follow"
        ai(body, follow and AI.FOLLOW or AI.ACTIVATE, entry)
        return { seconds = 10, unknown = "sent to the game, which reports no effect of it", watch = function(kind, _, data, by)
            return not follow and kind == "activated" and data == entry.id and by == body.index and "activated"
        end, check = function()
            local all = follow and world.entities(body.cell) or {}
            local me, other = all[body.index], all[entry.id]
            return me and other and me.x and other.x and far(me.x, me.y, other) <= NEAR and "confirmed" or nil, "following"
        end }
    end

    function companion.use_item(body, params)
        local has = false
        for _, item in pairs(LoadedCells[body.cell].data.objectData[body.index].inventory or {}) do
            has = has or item.refId == params.item_id
        end
        if not has then return nil, "NO_ITEM", "the server does not know of such an item in its inventory" end
        return console(body, "equip", body.index, params.item_id)
    end

    function companion.combat_action(body, params)
        local entry, code, message = entity(body, params.target_entity_id)
        if not entry then return nil, code, message end
        if params.action_type ~= "attack" then return nil, "UNSUPPORTED", "a companion can only attack" end
        ai(body, AI.COMBAT, entry)
        world.fought[body.agent] = clock()
        return { seconds = 15, unknown = "sent to the game; no hit was reported", watch = function(kind, _, data, by)
            return kind == "hit" and data == entry.id and by == body.index and "it has hit"
        end }
    end

    function companion.dialogue() return nil, "UNSUPPORTED", "a companion can't talk" end

    local function wait(_, params)
        local seconds = params.duration_seconds
        if type(seconds) ~= "number" or seconds < 0 or seconds > 86400 then return nil, "BAD_REQUEST", "duration_seconds" end
        return { seconds = seconds, confirmed = "waited" }
    end

    local function nothing() return { seconds = 0, confirmed = "done" } end

    for _, verbs in ipairs({ avatar, companion }) do
        verbs.wait, verbs.noop, verbs.journal_note = wait, nothing, nothing
    end

    function self.execute(request)
        local agent, id = request.agent, request.command_id
        if type(agent) ~= "string" or type(id) ~= "string" or #id == 0 or #id > 200 or type(request.command) ~= "string"
            or type(request.params or {}) ~= "table" then
            return nil, "BAD_REQUEST", "command takes agent, command_id, command and params"
        end
        if recall(id) then return recall(id) end
        local body, code, message = world.find(agent)
        if not body then return nil, code, message end
        if running[agent] then return nil, "BUSY", "the agent is busy with another command" end
        local verb = (body.embodiment == "avatar" and avatar or companion)[request.command]
        if not verb then return nil, "UNKNOWN_COMMAND", "there is no command " .. request.command end
        local command = { id = id, agent = agent, pid = body.pid, player = Players[body.pid], since = clock() }
        remember(id, { state = "dispatched" })
        local done, plan, why, text = xpcall(function()
            if world.dead(body) and verb ~= wait then return nil, "DEAD", "the body is dead" end
            return verb(body, request.params or {})
        end, debug.traceback)
        if not done then
            log("command " .. request.command .. " failed: " .. tostring(plan))
            return finish(command, "unknown", "SCRIPT_ERROR", "the script failed while it carried the command out")
        end
        if not plan then return finish(command, "failed", why, text) end
        command.plan, running[agent] = plan, command
        if plan.seconds == 0 then return finish(command, "confirmed", nil, plan.confirmed) end
        return recall(id)
    end

    function self.outcome(id)
        return recall(id) or { state = forgotten and "unknown" or "never" }
    end

    -- Something has happened in the game; a command that waits for it is confirmed.
    function self.note(kind, pid, data, by)
        for _, command in pairs(running) do
            local message = command.plan.watch and command.plan.watch(kind, pid, data, by)
            if message then command.happened = message end
        end
    end

    function self.tick()
        for agent, command in pairs(running) do
            local plan, state, message, code = command.plan, nil, nil, nil
            if command.player and Players[command.pid] ~= command.player then
                state, message, code = "unknown", "the player has left before the end", "GONE"
            elseif command.happened then state, message = "confirmed", command.happened
            elseif plan.check then
                local done
                done, state, message, code = pcall(plan.check)
                if not done then state, message, code = "unknown", "the body is out of sight", "GONE" end
            end
            if not state and (clock() - command.since) % 2 ^ 32 >= plan.seconds * 1000 then
                if plan.confirmed then state, message = "confirmed", plan.confirmed
                elseif plan.failed then state, message, code = "failed", plan.failed, "TIMEOUT"
                else state, message, code = "unknown", plan.unknown or "the game has not answered", "NO_UPDATE" end
            end
            if state then finish(command, state, code, message) end
        end
    end

    return self
end

return commands
