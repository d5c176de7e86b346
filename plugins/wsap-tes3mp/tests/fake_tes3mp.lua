-- A TES3MP server as its scripts see it: the `tes3mp` table with the real signatures, the tables of its core scripts,
-- and a small world with clients that answer late. Where the real server ends, this one is dead for good: `fake.dead`
-- tells why and is looked at outside of every pcall, and with `fake.hard` the process ends at once.
local fake = { now = 0, players = {}, cells = {}, timers = {}, log = {}, calls = {}, sent = {}, mistakes = 0,
    latency = 100, interiors = { ["Test House"] = true }, conjured = {}, kicked = {}, inside = false, hard = false }

local function die(reason)
    if fake.hard then
        io.stderr:write("SERVER DIED: " .. reason .. "\n")
        os.exit(70)
    end
    fake.dead = fake.dead or reason
    error("the server has died: " .. reason, 0)
end

-- Signatures ---------------------------------------------------------------------------------------------------------

local function whole(low, high)
    return function(value)
        return type(value) == "number" and value == math.floor(value) and value >= low and value <= high
    end
end
local FITS = {
    ["unsigned short"] = whole(0, 65535), ["unsigned int"] = whole(0, 2 ^ 32 - 1), ["int"] = whole(-2 ^ 31, 2 ^ 31 - 1),
    ["unsigned char"] = whole(0, 255), ["bool"] = function(value) return type(value) == "boolean" end,
    ["double"] = function(value) return type(value) == "number" and value == value and math.abs(value) ~= math.huge end,
    ["string"] = function(value) return type(value) == "string" and not value:find("%z") end,
    ["ScriptFunc"] = function(value) return type(value) == "string" end,
}
local NOTHING = { ["void"] = false, ["bool"] = false, ["string"] = "" }

local does = {}

function fake.install(signatures)
    tes3mp = {}
    for name, signature in pairs(signatures) do
        local result, kinds = signature[1], signature[2]
        tes3mp[name] = function(...)
            if fake.dead then die(fake.dead) end
            local count = select("#", ...)
            fake.calls[name] = (fake.calls[name] or 0) + 1
            if count ~= #kinds then die(("%s got %d arguments, not %d"):format(name, count, #kinds)) end
            for index = 1, count do
                local value = select(index, ...)
                if not FITS[kinds[index]](value) then
                    die(("%s got %s as argument %d, a %s"):format(name, tostring(value), index, kinds[index]))
                end
            end
            for index = 1, count do  -- a cell's name is read as two ints by functions that must not throw
                local x, y = tostring((select(index, ...))):match("^(%-?%d+), (%-?%d+)$")
                if x and math.max(math.abs(x), math.abs(y)) >= 2 ^ 31 then die("the numbers of a cell are too large") end
            end
            if does[name] then return does[name](...) end
            local nothing = NOTHING[result]
            if nothing == nil then return 0 end
            return nothing or nil
        end
    end
end

-- Timers: called by global name; an error in one ends the server; a freed one's place kills the next timer ------------

function does.CreateTimer(name, ms)
    if fake.inside then die("a timer was made within a timer") end
    local timer = { name = name, ms = ms, id = #fake.timers + 1 }
    if fake.freed then timer.broken, fake.freed = true, false end
    fake.timers[timer.id] = timer
    return timer.id
end

function does.StartTimer(id)
    if not fake.timers[id] then return end
    fake.timers[id].at = fake.now + fake.timers[id].ms
end

function does.RestartTimer(id, ms)
    if not fake.timers[id] then die("a timer that there is not was restarted") end
    fake.timers[id].ms = ms
    does.StartTimer(id)
end

function does.FreeTimer(id)
    fake.timers[id].at = nil
    fake.freed = true
end

function does.LogMessage(_, text) fake.log[#fake.log + 1] = text end
function does.GetServerVersion() return "0.8.1" end
function does.GetMillisecondsSinceServerStart() return fake.now % 2 ^ 32 end

-- Hooks of the core scripts: called without any guard ------------------------------------------------------------------

customEventHooks = { handlers = {}, validators = {} }

function customEventHooks.registerHandler(event, handler)
    local list = customEventHooks.handlers[event] or {}
    customEventHooks.handlers[event] = list
    list[#list + 1] = handler
end

function fake.event(name, ...)
    if fake.dead then return end
    for _, handler in ipairs(customEventHooks.handlers[name] or {}) do
        local done, why = pcall(handler, { validDefaultHandler = true, validCustomHandlers = true }, ...)
        if not done and not fake.dead then pcall(die, "an error in a handler of " .. name .. ": " .. tostring(why)) end
    end
end

-- The world ----------------------------------------------------------------------------------------------------------

Players, LoadedCells = {}, {}
WorldInstance = { data = { time = { hour = 9.5, daysPassed = 3 }, journal = {}, customVariables = {} },
    storedRegions = { ["test region"] = { currentWeather = 4 } }, mpNum = 100, saves = 0 }
function WorldInstance:GetCurrentMpNum() return self.mpNum end
function WorldInstance:SetCurrentMpNum(number) self.mpNum = number end
function WorldInstance:QuicksaveToDrive() self.saves = self.saves + 1 end
config = { shareJournal = false, allowConsole = false }
hourCounter = 9.5

local function float(value)  -- positions are kept in single precision
    if value == 0 then return 0 end
    local exponent = math.floor(math.log(math.abs(value)) / math.log(2))
    local unit = 2 ^ (exponent - 23)
    return math.floor(value / unit + 0.5) * unit
end

local function load_cell(description, pid)
    fake.cells[description] = fake.cells[description] or { actors = {} }
    local cell = LoadedCells[description]
    if not cell then
        cell = { description = description, visitors = {}, data = { objectData = {},
            packets = { spawn = {}, actorList = {}, delete = {}, place = {} } } }
        function cell:InitializeObjectData(index, ref_id)
            self.data.objectData[index] = self.data.objectData[index] or { refId = ref_id }
        end
        function cell:DeleteObjectData(index)
            self.data.objectData[index] = nil
            for _, list in pairs(self.data.packets) do
                for at = #list, 1, -1 do if list[at] == index then table.remove(list, at) end end
            end
        end
        LoadedCells[description] = cell
    end
    if pid then
        cell.visitors[#cell.visitors + 1] = pid
        cell.authority = cell.authority or pid
    end
    return cell
end
fake.load_cell = load_cell

local function unload_cell(description, pid)
    local cell = LoadedCells[description]
    if not cell then return end
    for at = #cell.visitors, 1, -1 do if cell.visitors[at] == pid then table.remove(cell.visitors, at) end end
    if cell.authority == pid then cell.authority = cell.visitors[1] end
    if #cell.visitors == 0 then fake.cells[description] = nil end  -- the scripts keep theirs, the server does not
end

function fake.connect(pid, name, cell, x, y, z)
    fake.players[pid] = { name = name, cell = cell, x = x, y = y, z = z, real = { cell = cell, x = x, y = y, z = z },
        base = 50, current = 50, level = 3, region = "Test Region", answers = true, inbox = {} }
    Players[pid] = { pid = pid, name = name, accountName = name, consoleCommandsQueued = {}, data = {
        inventory = { { refId = "gold_001", count = 25, charge = -1, enchantmentCharge = -1 },
            { refId = "test potion", count = 2, charge = -1, enchantmentCharge = -1 } },
        equipment = { [16] = { refId = "test sword", count = 1 } },
        journal = { { type = 0, quest = "test_quest", index = 10 }, { type = 1, quest = "test_quest", index = 30 } },
        miscellaneous = { selectedSpell = "test spell" }, spellbook = { "test spell" } } }
    local player = Players[pid]
    function player:IsLoggedIn() return not self.out end
    load_cell(cell, pid)
    fake.event("OnPlayerAuthentified", pid)
end

function fake.disconnect(pid)
    unload_cell(fake.players[pid].cell, pid)
    fake.players[pid], Players[pid] = nil, nil
    fake.event("OnPlayerDisconnect", pid)
end

function fake.place(description, index, ref_id, kind, x, y, z)
    local cell = load_cell(description)
    cell.data.objectData[index] = { refId = ref_id, location = x and { posX = x, posY = y, posZ = z } or nil, kind = kind }
    if kind == "actor" then
        table.insert(cell.data.packets.actorList, index)
        local ref, mp = index:match("(%d+)-(%d+)")
        table.insert(fake.cells[description].actors, { ref = tonumber(ref), mp = tonumber(mp), x = x, y = y, z = z,
            base = 40, current = 40 })
    end
end

local function actor_of(index, description)
    for _, actor in ipairs((fake.cells[description] or { actors = {} }).actors) do
        if actor.ref .. "-" .. actor.mp == index then return actor end
    end
end
fake.actor_of = actor_of

local function of_player(field, default)
    return function(pid)
        local player = fake.players[pid]
        if not player then return default end
        return player[field]
    end
end
does.GetCell, does.GetRegion = of_player("cell"), of_player("region")
does.GetPosX, does.GetPosY, does.GetPosZ = of_player("x", 0), of_player("y", 0), of_player("z", 0)
does.GetHealthBase, does.GetHealthCurrent, does.GetLevel = of_player("base", 0), of_player("current", 0), of_player("level", 0)

-- What a client is sent it does later, if it answers at all.
local function tell(pid, action, more)
    local player = fake.players[pid]
    if not player or not player.answers then return end
    table.insert(player.inbox, { at = fake.now + fake.latency + (more or 0), action = action })
end

function does.SetCell(pid, cell)
    if fake.players[pid] then fake.players[pid].cell = cell end
end

function does.SendCell(pid)
    local player = fake.players[pid]
    if not player then return end
    local cell, from = player.cell, player.real.cell
    tell(pid, function()
        if not cell:find("^%-?%d+, %-?%d+$") and not fake.interiors[cell] then
            player.ignoring, player.cell = true, from  -- the next position packet is ignored
            return
        end
        unload_cell(from, pid)
        player.real.cell, player.cell = cell, cell
        player.x, player.y, player.z = 7, 7, 7  -- where its client comes in, until it is sent a position
        player.real.x, player.real.y, player.real.z = 7, 7, 7
        load_cell(cell, pid)
        fake.event("OnPlayerCellChange", pid, {}, from)
    end)
end

function does.SetPos(pid, x, y, z)
    local player = fake.players[pid]
    if player then player.x, player.y, player.z = float(x), float(y), float(z) end
end

function does.SendPos(pid)
    local player = fake.players[pid]
    if not player then return end
    local x, y, z = player.x, player.y, player.z
    tell(pid, function()
        if player.ignoring then player.ignoring = false
        else player.real.x, player.real.y, player.real.z = x, y, z - 20 end  -- it falls to the ground
        player.x, player.y, player.z = player.real.x, player.real.y, player.real.z
    end, fake.latency)
end

function does.Resurrect(pid)
    tell(pid, function()
        fake.players[pid].current = fake.players[pid].base
        fake.event("OnPlayerResurrect", pid)
    end)
end

-- Lists that are filled and then sent ------------------------------------------------------------------------------------

local list, item = {}, {}
function does.ClearObjectList() list, item = { objects = {} }, {} end
function does.SetObjectListPid(pid) list.pid = pid end
function does.SetObjectListCell(cell) list.cell = cell end
function does.SetObjectListConsoleCommand(text) list.console = text end
function does.SetObjectRefId(id) item.refId = id end
function does.SetObjectRefNum(number) item.ref = number end
function does.SetObjectMpNum(number) item.mp = number end
function does.SetObjectPosition(x, y, z) item.x, item.y, item.z = x, y, z end
function does.SetObjectActivatingPid(pid) item.by = pid end
function does.SetPlayerAsObject(pid) item.player = pid end
function does.SetObjectDialogueChoiceType(kind) item.choice = kind end
function does.SetObjectDialogueChoiceTopic(topic) item.topic = topic end
function does.AddObject()
    item.index = item.ref and item.ref .. "-" .. item.mp or nil
    table.insert(list.objects, item)
    item = {}
end

local function sent(name, action)
    does[name] = function()
        local now = list
        table.insert(fake.sent, { name = name, list = now })
        if not now.pid then die(name .. " without a player") end
        action(now, now.objects[1])
    end
end

sent("SendObjectActivate", function(now, object)
    tell(now.pid, function()
        local cell = LoadedCells[now.cell]
        local data = object.index and cell and cell.data.objectData[object.index]
        if not data then return end
        if data.kind == "item" then
            cell:DeleteObjectData(object.index)
            fake.event("OnObjectDelete", now.pid, now.cell, { [object.index] = { refId = data.refId } })
        elseif data.kind == "door" then
            fake.event("OnDoorState", now.pid, now.cell, { [object.index] = { refId = data.refId } })
        elseif data.kind == "chest" then
            fake.event("OnContainer", now.pid, now.cell, { [object.index] = { refId = data.refId } })
        end
    end)
end)

sent("SendObjectDialogueChoice", function(now, object)
    tell(now.pid, function()
        if object.topic == "told topic" then fake.event("OnPlayerTopic", now.pid) end
        if object.topic == "quest topic" then fake.event("OnPlayerJournal", now.pid, {}) end
    end)
end)

sent("SendConsoleCommand", function(now)
    tell(now.pid, function()
        local queue, allowed = Players[now.pid].consoleCommandsQueued, false
        for at, text in pairs(queue) do
            if text == now.console then queue[at], allowed = nil, true break end
        end
        if not allowed and not config.allowConsole then
            fake.kicked[#fake.kicked + 1] = now.pid
            return
        end
        local id = now.console:match('^equip "(.-)"$')
        local has = false
        for _, one in pairs(Players[now.pid].data.inventory) do has = has or one.refId == id end
        if id and not has and not now.objects[1].index then fake.conjured[#fake.conjured + 1] = id end
        fake.event("OnConsoleCommand", now.pid, now.cell, now.console, {}, {})
    end)
end)

sent("SendObjectSpawn", function(now, object)
    if not fake.cells[now.cell] then return end
    table.insert(fake.cells[now.cell].actors, { ref = object.ref, mp = object.mp, x = object.x, y = object.y, z = object.z,
        base = 40, current = 40 })
end)

sent("SendObjectDelete", function(now, object)
    local actors = (fake.cells[now.cell] or { actors = {} }).actors
    for at = #actors, 1, -1 do
        if actors[at].ref == object.ref and actors[at].mp == object.mp then table.remove(actors, at) end
    end
end)

function does.EquipItem(pid, slot, id)
    if slot > 18 then die("memory beyond the equipment was written") end
    fake.players[pid].equipping = { slot = slot, id = id }
end
function does.SendEquipment(pid)
    local wanted = fake.players[pid].equipping
    tell(pid, function()
        Players[pid].data.equipment[wanted.slot] = { refId = wanted.id, count = 1 }
        fake.event("OnPlayerEquipment", pid, {})
    end)
end

-- Actors: the server stores what clients report; only the client with the authority moves them --------------------------------

local reading
function does.ReadCellActorList(description)
    if not fake.cells[description] then die("the actors of a cell were read that the server does not have") end
    reading = fake.cells[description].actors
end
function does.GetActorListSize()
    if not reading then die("no actor list was read") end
    return #reading
end
local function of_actor(field)
    return function(index)
        if not reading or not reading[index + 1] then die("an actor's index is out of range") end
        return reading[index + 1][field]
    end
end
does.GetActorRefNum, does.GetActorMpNum = of_actor("ref"), of_actor("mp")
does.GetActorPosX, does.GetActorPosY, does.GetActorPosZ = of_actor("x"), of_actor("y"), of_actor("z")
does.GetActorHealthBase, does.GetActorHealthCurrent = of_actor("base"), of_actor("current")
function does.GetActorRefId() return "" end
function does.DoesActorHavePosition(index) return of_actor("x")(index) ~= nil end
function does.DoesActorHaveStatsDynamic(index) return of_actor("base")(index) ~= nil end

local actor_list, actor = {}, {}
function does.ClearActorList() actor_list, actor = { actors = {} }, {} end
function does.SetActorListPid(pid) actor_list.pid = pid end
function does.SetActorListCell(cell) actor_list.cell = cell end
function does.SetActorRefNum(number) actor.ref = number end
function does.SetActorMpNum(number) actor.mp = number end
function does.SetActorAIAction(action) actor.action = action end
function does.SetActorAITargetToPlayer(pid) actor.player = pid end
function does.SetActorAITargetToObject(ref, mp) actor.target = ref .. "-" .. mp end
function does.SetActorAICoordinates(x, y, z) actor.x, actor.y, actor.z = x, y, z end
function does.AddActor()
    table.insert(actor_list.actors, actor)
    actor = {}
end
function does.SendActorAI()
    local now = actor_list
    table.insert(fake.sent, { name = "SendActorAI", list = now })
    tell(now.pid, function()
        local one = now.actors[1]
        local found = actor_of(one.ref .. "-" .. one.mp, now.cell)
        if found then found.ai, found.cell = one, now.cell end
    end)
end

local function walk(one, ms)
    local ai, player = one.ai, fake.players[one.ai.player]
    local to = ai.x and ai or player or (ai.target and actor_of(ai.target, one.cell)) or one
    local distance = math.sqrt((to.x - one.x) ^ 2 + (to.y - one.y) ^ 2)
    local step = math.min(distance, ms / 1000 * 150)
    if distance > 0 and (ai.x or distance > 60) then
        one.x, one.y = one.x + (to.x - one.x) / distance * step, one.y + (to.y - one.y) / distance * step
    end
    if distance > 100 or ai.done then return end
    local index = one.ref .. "-" .. one.mp
    if ai.action == 2 then
        fake.event("OnObjectHit", 0, one.cell, { [ai.target or "x"] = { hittingUniqueIndex = index, hit = {} } }, {})
        ai.done = true
    elseif ai.action == 1 then
        fake.event("OnObjectActivate", 0, one.cell, { [ai.target or "x"] = { activatingUniqueIndex = index } }, {})
        ai.done = true
    end
end

-- Lets time pass: clients answer, those with authority move actors, timers are called.
function fake.step(ms)
    fake.now = fake.now + ms
    for _, player in pairs(fake.players) do
        local due = {}
        for at = #player.inbox, 1, -1 do
            if player.inbox[at].at <= fake.now then table.insert(due, 1, table.remove(player.inbox, at)) end
        end
        for _, packet in ipairs(due) do packet.action() end
    end
    for description, cell in pairs(fake.cells) do
        local records = LoadedCells[description]
        local authority = records and fake.players[records.authority]
        for _, one in ipairs(cell.actors) do
            if one.ai and authority and authority.answers then walk(one, ms) end
        end
    end
    for _, timer in ipairs(fake.timers) do
        if timer.at and timer.at <= fake.now and not timer.broken and not fake.dead then
            timer.at = nil
            fake.inside = true
            local called = _G[timer.name]
            local done, why = pcall(called or function() error("no function " .. timer.name, 0) end)
            fake.inside = false
            if not done and not fake.dead then pcall(die, "an error in a timer: " .. tostring(why)) end
        end
    end
end

-- Wires in memory, which a test holds the other end of -----------------------------------------------------------------------

local arriving = {}

-- A connection to the script: `chunk` bounds the bytes that go at once, in either direction.
function fake.wire(chunk)
    local wire = { into = "", out = "", chunk = chunk or 65536 }
    wire.connection = {
        receive = function()
            if wire.into == "" then return nil, wire.ended end
            local bytes = wire.into:sub(1, wire.chunk)
            wire.into = wire.into:sub(#bytes + 1)
            return bytes
        end,
        send = function(bytes)
            if wire.ended then return nil end
            if wire.deaf then return 0 end
            local taken = bytes:sub(1, wire.chunk)
            wire.out = wire.out .. taken
            return #taken
        end,
        close = function() wire.closed = true end,
    }
    arriving[#arriving + 1] = wire
    return wire
end

function fake.listener()
    local listener = { port = 0, close = function() fake.shut = true end }
    function listener.take() return table.remove(arriving, 1) end
    function listener.accept()
        local wire = listener.take()
        return wire and wire.connection
    end
    return listener
end

return fake
