-- What agents can do, by embodiment, and what came of it. A command id is carried out at most once in a boot.
local commands = {}
local MEMORY = 20000  -- command ids in each of two generations
local LIFT = 24  -- a body is put so much above the spot: it falls, so that its client has to report a position
local NEAR, TALL, BESIDE, AI = 256, 512, 64, { ACTIVATE = 1, COMBAT = 2, FOLLOW = 4, TRAVEL = 5 }
local UNSEEN = "sent to the game, which has reported no effect of it"

-- The only console commands there are; what goes between the quotes is an id without anything that could end it.
local CONSOLE = { equip = 'equip "%s"', cast = 'cast "%s" "%s"' }

local function plain(id)
    return type(id) == "string" and #id > 0 and #id <= 64 and not id:find('[%c"\\;]') and not id:find("^%s*/")
end
local function far(a, b) return math.sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2) end

function commands.new(parts)
    local api, world, lib, clock, emit, log = parts.api, parts.world, parts.lib, parts.clock, parts.emit, parts.log
    local refuse = api.refuse
    local self, avatar, companion, running = {}, {}, {}, {}  -- running: agent -> its command
    local young, old, count, forgotten, beat = {}, {}, 0, false, 0
    local function remember(id, result)
        if count >= (parts.settings.memory or MEMORY) and not young[id] then
            forgotten = forgotten or next(old) ~= nil
            young, old, count = {}, young, 0
        end
        count, young[id] = count + (young[id] and 0 or 1), result
        return result
    end
    local function finish(command, state, code, message)
        running[command.agent] = nil
        local seen, facts = pcall(function() return world.facts(world.find(command.agent)) end)
        local sequence = seen and facts.sequence or nil
        emit({ event = "outcome", command_id = command.id, state = state, code = code, message = message, sequence = sequence })
        return remember(command.id, { state = state, code = code, message = message, sequence = sequence })
    end
    -- Lets a client run a console command on its player or on an object. A server kicks a player whose client reports
    -- a console command that is not in this queue.
    local function console(body, entry, name, ...)
        for _, id in ipairs({ ... }) do
            if not plain(id) then refuse("BAD_REQUEST", "an id has characters that no console command may have") end
        end
        local text = CONSOLE[name]:format(...)
        world.select(body.cell, body.pid, entry)
        api.SetObjectListConsoleCommand(text); api.AddObject()
        table.insert(Players[body.pid].consoleCommandsQueued or {}, text)
        api.SendConsoleCommand(false, false)
        return { seconds = 5, watch = function(kind, pid, data)
            return kind == "console" and pid == body.pid and data == text and "the game has run it"
        end }
    end
    -- Gives a companion an AI package; the client with the authority over its cell carries it out.
    local function ai(body, action, target)
        local ref, mp = lib.split(body.index)
        api.ClearActorList(); api.SetActorListPid(body.pid); api.SetActorListCell(body.cell)
        api.SetActorRefNum(ref); api.SetActorMpNum(mp); api.SetActorAIAction(action)
        if target.pid then api.SetActorAITargetToPlayer(target.pid)
        elseif target.id then api.SetActorAITargetToObject(lib.split(target.id))
        else api.SetActorAICoordinates(target.x, target.y, target.z) end
        api.SetActorAIRepetition(false); api.AddActor(); api.SendActorAI(true, false)
    end
    local function entity(body, id)
        return type(id) == "string" and world.entities(body.cell)[id] or refuse("NO_ENTITY", "nothing with that id is near")
    end
    local function place_of(body, id)
        local entry = world.entities(body.cell)[id]
        return entry and entry.x and entry
    end
    -- Where `move_to` leads: an entity's place, or coordinates with what is missing filled in.
    local function destination(body, params)
        if params.target_entity_id ~= nil then
            local entry, me = entity(body, params.target_entity_id), place_of(body, body.index or "player:" .. body.account)
            if not (entry.x and me) then refuse("NO_PLACE", "the server does not know where that is") end
            local part = BESIDE / math.max(BESIDE, far(me, entry))  -- on this side: two can't stand in one spot
            local x, y = entry.x + (me.x - entry.x) * part, entry.y + (me.y - entry.y) * part
            return { cell = entry.cell, x = x, y = y, z = entry.z }
        end
        local place = { cell = params.target_cell, x = params.target_x, y = params.target_y, z = params.target_z }
        for axis in ("xyz"):gmatch(".") do
            local value, lonely = place[axis], axis == "y" and not place.x ~= not place.y
            if lonely or value ~= nil and (type(value) ~= "number" or math.abs(value) > 1e7) then
                refuse("BAD_REQUEST", "target_" .. axis .. " is no coordinate")
            end
        end
        if place.cell ~= nil and (not plain(place.cell) or place.cell:find(("%d"):rep(8))) then refuse("BAD_REQUEST", "target_cell is no name of a cell") end
        if not place.x then return place.cell and place or refuse("BAD_REQUEST", "there is no target") end
        local there = lib.grid(place.cell or body.cell) and lib.cell_at(place.x, place.y)
        if there and there ~= (place.cell or there) then refuse("BAD_REQUEST", "this is in the cell " .. there) end
        place.cell = there or place.cell or body.cell
        if not place.z then
            local best
            for _, entry in pairs(world.entities(place.cell)) do
                if entry.z and (not best or far(place, entry) < far(place, best)) then best = entry end
            end
            local near = best and far(place, best) <= TALL  -- ground may rise and fall beyond
            place.z = near and best.z or refuse("NO_HEIGHT", "give target_z: nothing near there tells how high the ground is")
        end
        return place
    end
    function avatar.move_to(body, params)
        local place, pid, asked = destination(body, params), body.pid, nil
        local arrived = place.cell == body.cell
        local function now() return { x = api.GetPosX(pid), y = api.GetPosY(pid), z = api.GetPosZ(pid) } end
        local reach = place.x and arrived and math.max(LIFT, math.min(NEAR, far(now(), place) / 2)) or NEAR
        if not arrived then api.SetCell(pid, place.cell); api.SendCell(pid) end
        if place.x then
            api.SetPos(pid, place.x, place.y, place.z + LIFT); api.SendPos(pid)
            asked = now()  -- the server tells this back until the client reports something else
        end
        return { seconds = 10, message = "the player's client has not reported where it is", check = function(passed)
            if not asked then return arrived and "confirmed", "arrived in " .. place.cell end
            local at = now()
            if at.x == asked.x and at.y == asked.y and at.z == asked.z then return nil end
            if far(at, place) <= reach and math.abs(at.z - place.z) <= TALL then return arrived and "confirmed", "arrived" end
            if passed > 3000 then return "failed", "the game has put the body elsewhere", "ELSEWHERE" end
        end, watch = function(kind, who)
            arrived = arrived or (kind == "cell" and who == pid and api.GetCell(pid) == place.cell)
        end }
    end
    function avatar.interact(body, params)
        local entry = entity(body, params.entity_id)
        world.select(entry.cell, body.pid, entry)
        api.SetObjectActivatingPid(body.pid); api.AddObject(); api.SendObjectActivate(false, false)
        if entry.kind == "actor" then world.talked[body.agent] = { entity = entry.id, at = clock() } end
        local effects = { cell = "it led elsewhere", inventory = "the inventory has changed", told = "there is news" }
        return { seconds = 3, watch = function(kind, pid, data)
            return kind == "touched" and data == entry.id and "it has changed" or pid == body.pid and effects[kind]
        end }
    end
    local function carried(list, id)
        for _, item in pairs(list or {}) do if id and item.refId == id then return item end end
        return refuse("NO_ITEM", "the server knows of no such item in the inventory")
    end
    function avatar.use_item(body, params)
        if params.target_entity_id then refuse("UNSUPPORTED", "an avatar can't use an item on something") end
        local item, plan = carried(body.player.data.inventory, params.item_id), { seconds = 5 }
        if params.slot then
            api.EquipItem(body.pid, params.slot, item.refId, item.count, item.charge or -1, item.enchantmentCharge or -1)
            api.SendEquipment(body.pid)
        else plan = console(body, { pid = body.pid }, "equip", item.refId) end
        local ran, effects = plan.watch, { equipment = "equipped", inventory = "used up", used = "used" }
        plan.watch = function(kind, pid, data) return pid == body.pid and effects[kind] or ran and ran(kind, pid, data) end
        return plan
    end
    function avatar.combat_action(body, params)
        local data, spell = body.player.data, tostring(params.action_type):match("^cast:(.+)$")
        if params.action_type == "cast" then spell = (data.miscellaneous or {}).selectedSpell end
        if not spell then refuse("UNSUPPORTED", "an avatar can only cast or cast:SPELL; the server can't make it swing") end
        local entry, known = entity(body, params.target_entity_id), false
        for _, id in pairs(data.spellbook or {}) do known = known or id == spell end
        if not known then refuse("NO_SPELL", "the character does not know that spell") end
        world.fought[body.agent] = clock()
        return console(body, { pid = body.pid }, "cast", spell, entry.ref_id)
    end
    function avatar.dialogue(body, params)
        local entry = entity(body, params.entity_id)
        if not plain(params.topic) then refuse("UNSUPPORTED", "dialogue goes by topic only, and a topic is plain text") end
        world.select(entry.cell, body.pid, entry)
        api.SetObjectDialogueChoiceType(0); api.SetObjectDialogueChoiceTopic(params.topic); api.AddObject()
        api.SendObjectDialogueChoice(false, false)
        world.talked[body.agent] = { entity = entry.id, topic = params.topic, at = clock() }
        return { seconds = 3, watch = function(kind, pid) return kind == "told" and pid == body.pid and "there is news" end }
    end
    function companion.move_to(body, params)
        local place = destination(body, params)
        if not place.x or (place.cell ~= body.cell and not lib.grid(place.cell)) then
            refuse("UNSUPPORTED", "a companion walks to coordinates or an entity, not through doors")
        end
        local start = place_of(body, body.index)
        local seconds = math.min(10 + (start and far(start, place) or 8192) / 80, 180)
        ai(body, AI.TRAVEL, { x = place.x, y = place.y, z = place.z })
        return { seconds = seconds, failed = "TIMEOUT", message = "it has not got there in time", check = function()
            local at = place_of(body, body.index)
            return at and far(at, place) <= NEAR / 2 and "confirmed", "arrived"
        end }
    end
    function companion.interact(body, params)
        local entry, follow = entity(body, params.entity_id), params.interaction_type == "follow"
        ai(body, follow and AI.FOLLOW or AI.ACTIVATE, entry)
        return { seconds = 10, watch = function(kind, _, data, by)
            return not follow and kind == "activated" and data == entry.id and by == body.index and "activated"
        end, check = follow and function()
            local me, other = place_of(body, body.index), place_of(body, entry.id)
            return me and other and far(me, other) <= NEAR and "confirmed", "following"
        end or nil }
    end
    function companion.use_item(body, params)
        local item = carried(LoadedCells[body.cell].data.objectData[body.index].inventory, params.item_id)
        return console(body, { id = body.index, ref_id = body.ref_id }, "equip", item.refId)
    end
    function companion.combat_action(body, params)
        local entry = entity(body, params.target_entity_id)
        if params.action_type ~= "attack" then refuse("UNSUPPORTED", "a companion can only attack") end
        ai(body, AI.COMBAT, entry)
        world.fought[body.agent] = clock()
        return { seconds = 15, watch = function(kind, _, data, by)
            return kind == "hit" and data == entry.id and by == body.index and "it has hit"
        end }
    end
    function companion.dialogue() refuse("UNSUPPORTED", "a companion can't talk") end
    local function wait(_, params)
        local seconds = params.duration_seconds or 0
        if type(seconds) ~= "number" or seconds < 0 or seconds > 86400 then refuse("BAD_REQUEST", "duration_seconds") end
        return { seconds = seconds, confirmed = true, message = "done" }
    end
    for _, verbs in ipairs({ avatar, companion }) do verbs.wait, verbs.noop, verbs.journal_note = wait, wait, wait end
    function self.execute(request)
        local agent, id, name, params = request.agent, request.command_id, request.command, request.params or {}
        if type(agent) ~= "string" or type(id) ~= "string" or id == "" or #id > 200 or type(params) ~= "table" then
            refuse("BAD_REQUEST", "command takes agent, command_id, command and params")
        end
        if young[id] or old[id] then return young[id] or old[id] end
        local body = world.find(agent)
        local verb = (body.player and avatar or companion)[name] or refuse("BAD_REQUEST", "there is no such command")
        if running[agent] then refuse("BUSY", "the agent is busy with another command") end
        local command = { id = id, agent = agent, pid = body.pid, player = Players[body.pid], since = clock() }
        remember(id, { state = "dispatched" })
        local sent = api.sent
        local done, plan = api.try(function()
            if verb ~= wait and world.dead(body) then refuse("DEAD", "the body is dead") end
            return verb(body, params)
        end)
        if not done and type(plan) == "table" then return finish(command, "failed", plan.code, plan.message) end
        if not done then
            log("command " .. tostring(name) .. " failed: " .. plan)
            return finish(command, api.sent > sent and "unknown" or "failed", "SCRIPT_ERROR", "the script failed")
        end
        if plan.seconds == 0 then return finish(command, "confirmed", nil, plan.message) end
        command.plan, running[agent] = plan, command
        return young[id]
    end
    -- What became of a command. One that this boot has not seen was never carried out; that is certain as long as no
    -- id was forgotten.
    function self.outcome(id) return young[id] or old[id] or { state = forgotten and "unknown" or "never" } end
    -- Something has happened in the game, which a command may be waiting for.
    function self.note(kind, pid, data, by)
        for _, command in pairs(running) do
            command.happened = command.happened or command.plan.watch and command.plan.watch(kind, pid, data, by)
        end
    end
    function self.tick()
        beat = (beat + 1) % 4  -- looking for where a body is takes a while
        for _, command in pairs(running) do
            local plan, passed, done, state, message, code = command.plan, (clock() - command.since) % 2 ^ 32, true
            if Players[command.pid] ~= command.player then
                state, message, code = "unknown", "the player has left before the end", "GONE"
            elseif type(command.happened) == "string" then state, message = "confirmed", command.happened
            elseif plan.check and beat == 0 then done, state, message, code = pcall(plan.check, passed) end
            if not done then state, message, code = "unknown", "the body is out of sight", "GONE" end
            if not state and passed >= plan.seconds * 1000 then
                state = plan.confirmed and "confirmed" or plan.failed and "failed" or "unknown"
                message, code = plan.message or UNSEEN, state ~= "confirmed" and (plan.failed or "NO_UPDATE") or nil
            end
            if state then finish(command, state, code, message) end
        end
    end
    return self
end

return commands
