-- Bodies of agents, and what the server knows about the world around them.
--
-- An avatar is a connected player's character, found by the name of its account, since player ids are reused. A
-- companion is an NPC that this script has spawned; it stands still unless a client holds the authority over its cell.
local world = {}
local WEATHERS = { [0] = "clear", "cloudy", "foggy", "overcast", "rain", "thunder", "ash", "blight", "snow", "blizzard" }
local BYTES = "bytes:"
local CELL_SIZE, MOST_ROWS, MODES = 8192, 500, { dormant = true, suspend = true, despawn = true }

local function numbers(a, b) return tonumber(a), tonumber(b) end
function world.grid(cell) return numbers(cell:match("^(%-?%d+), (%-?%d+)$")) end
function world.cell_at(x, y) return ("%d, %d"):format(math.floor(x / CELL_SIZE), math.floor(y / CELL_SIZE)) end
function world.split(index) return numbers(index:match("^(%d+)%-(%d+)$")) end
local function set(list, change)
    local found = {}
    for _, value in pairs(type(list) == "table" and list or {}) do found[change and change(value) or value] = true end
    return found
end
local function finite(value, default)
    return type(value) == "number" and value == value and math.abs(value) < 1e15 and value or default or 0
end
local function health(current, max) return { current = finite(current), max = finite(max) } end
function world.new(parts)
    local api, json, settings, clock = parts.api, parts.json, parts.settings, parts.clock
    local self = { fought = {}, talked = {} }  -- agent -> when it fought last; with whom it talked, about what, when
    local seen = {}  -- agent -> number and text of its last facts
    -- The id of an account: its name in lower case. A name that is not UTF-8 can't be one, and replaced bytes would make
    -- one agent of two players; it becomes the hex digits of its bytes, as does a name that looks like that.
    local function identity(name)
        local text, valid = json.utf8(name)
        if valid and name:sub(1, #BYTES):lower() ~= BYTES then return text:lower() end
        return BYTES .. name:lower():gsub(".", function(byte) return ("%02x"):format(byte:byte()) end)
    end
    local function account(player) return identity(tostring(player.accountName or player.name)) end
    local function here(pid) return Players[pid] and Players[pid]:IsLoggedIn() and Players[pid] or nil end
    -- The scripts may have a cell without the server itself having it; reading the actors of such a one ends the
    -- server. A visitor means that it has it.
    local function visited(description)
        local cell = description and LoadedCells[description]
        for _, pid in pairs(cell and cell.visitors or {}) do if here(pid) then return cell, pid end end
        return nil
    end
    local function authority(cell)
        return cell.authority and set(cell.visitors)[cell.authority] and here(cell.authority) and cell.authority or nil
    end
    -- All bodies that somebody has joined with, in the world's data, so that they outlive a restart of the server.
    local function joined()
        local variables = WorldInstance.data.customVariables or {}
        WorldInstance.data.customVariables = variables
        variables.wsap_bodies = variables.wsap_bodies or {}
        return variables.wsap_bodies
    end
    local function keep(body)
        joined()["agent " .. body.agent] = not body.gone and body or nil
        if WorldInstance.QuicksaveToDrive then WorldInstance:QuicksaveToDrive() end
    end
    -- All bodies by agent; a player is one by the name of its account, unless another agent has joined with it.
    local function all()
        local found, taken = {}, {}
        local allowed, ids = set(settings.avatars, identity), set(settings.avatars, string.lower)
        for _, body in pairs(joined()) do
            found[body.agent] = body
            if body.account then taken[body.account] = true end
        end
        for pid, player in pairs(Players) do
            local name = here(pid) and account(player)
            if name and not taken[name] and not found[name] and (settings.avatars == "*" or allowed[name]
                or name:sub(1, #BYTES) == BYTES and ids[name]) then
                found[name] = { agent = name, name = name, embodiment = "avatar", account = name }
            end
        end
        return found
    end
    -- A body with where it is now: `cell`, and `pid`, the player or the client that moves the companion; nil if nowhere.
    local function located(body)
        local at = setmetatable({}, { __index = body })
        for pid, player in pairs(body.account and Players or {}) do
            if here(pid) and account(player) == body.account then
                at.pid, at.player, at.cell = pid, player, api.GetCell(pid) or ""
            end
        end
        for description, cell in pairs(body.index and LoadedCells or {}) do
            local data = cell.data.objectData[body.index]
            if data and data.refId and visited(description) then at.cell, at.pid = description, authority(cell) end
        end
        return at.pid and at.cell ~= "" and not body.asleep and at or nil
    end
    -- The body of an agent, as it is now.
    function self.find(agent)
        local body = all()[agent] or api.refuse("NO_AGENT", "no player and no companion has that name")
        return located(body) or api.refuse("NOT_CONNECTED", body.asleep and "the agent's body is asleep; join first"
            or body.account and "the player is not connected" or "no player is near the companion, so nothing moves it")
    end
    function self.agent_of(pid)
        local player = here(pid)
        for agent, body in pairs(player and all() or {}) do
            if body.account == account(player) and not body.asleep then return agent end
        end
    end
    -- Adds what clients have reported of the actors of a cell. Their ref ids come back empty.
    local function actors(description, found)
        api.ReadCellActorList(description)
        for at = 0, api.GetActorListSize() - 1 do
            local entry = { id = api.GetActorRefNum(at) .. "-" .. api.GetActorMpNum(at), kind = "actor", cell = description }
            if api.DoesActorHavePosition(at) then
                entry.x, entry.y, entry.z = api.GetActorPosX(at), api.GetActorPosY(at), api.GetActorPosZ(at)
            end
            if api.DoesActorHaveStatsDynamic(at) then
                entry.health = health(api.GetActorHealthCurrent(at), api.GetActorHealthBase(at))
            end
            found[entry.id] = entry
        end
    end
    -- Adds what the scripts have stored of a cell's objects; that is what somebody has touched, and the ref ids of actors.
    local function objects(description, cell, found)
        local packets = cell.data.packets or {}
        local deleted, acting = set(packets.delete), set(packets.actorList)
        for id, data in pairs(cell.data.objectData) do
            local place = type(data.location) == "table" and data.location or {}
            if data.refId and data.state ~= false and not deleted[id] and world.split(id) then
                local entry = found[id] or { id = id, cell = description, kind = acting[id] and "actor" or "object" }
                entry.ref_id = tostring(data.refId)
                if not entry.x then entry.x, entry.y, entry.z = place.posX, place.posY, place.posZ end
                if data.deathState then entry.health = { current = 0, max = entry.health and entry.health.max or 0 } end
                found[id] = entry
            end
        end
    end
    -- Everybody and everything in a cell by id, and, outside, in the cells around it.
    function self.entities(cell)
        local found, cells, x, y = {}, { [cell] = true }, world.grid(cell)
        for step = 0, x and 8 or -1 do
            cells[("%d, %d"):format(x + step % 3 - 1, y + math.floor(step / 3) - 1)] = true
        end
        for description in pairs(cells) do
            local records = visited(description)
            if records then actors(description, found); objects(description, records, found) end
        end
        for pid, player in pairs(Players) do
            local there = here(pid) and api.GetCell(pid)
            if there and cells[there] then
                local id = "player:" .. account(player)
                found[id] = { id = id, ref_id = "player", kind = "player", name = tostring(player.name), pid = pid,
                    cell = there, x = api.GetPosX(pid), y = api.GetPosY(pid), z = api.GetPosZ(pid),
                    health = health(api.GetHealthCurrent(pid), api.GetHealthBase(pid)) }
            end
        end
        return found
    end
    -- A list of rows in the order of their keys, no longer than it may be.
    local function listed(rows, most)
        local keys, list = {}, json.list()
        for key in pairs(rows) do keys[#keys + 1] = key end
        table.sort(keys)
        for index = 1, math.min(#keys, most) do list[index] = rows[keys[index]] end
        return list
    end
    local function inventory(data)
        local worn, rows = {}, {}
        for _, item in pairs(data.equipment or {}) do worn[item.refId or ""] = true end
        for at, item in pairs(data.inventory or {}) do
            local id = item.refId
            if type(id) == "string" and finite(item.count) >= 1 then
                rows[id .. " " .. at] = { ref_id = id, count = item.count, equipped = worn[id] or false }
            end
        end
        return listed(rows, MOST_ROWS)
    end
    local function journal(entries)
        local rows = {}
        for _, entry in pairs(entries or {}) do
            local quest, last = entry.quest, rows[entry.quest or ""]
            if type(quest) == "string" and finite(entry.index) >= (last and last.index or 0) then
                rows[quest] = { quest = quest, index = finite(entry.index) }
            end
        end
        return listed(rows, MOST_ROWS)
    end
    local function nearest(entities, x, y)
        local rows = {}
        for id, entry in pairs(entities) do
            entry.pid = nil
            if entry.x then entry.x, entry.y, entry.z = finite(entry.x), finite(entry.y), finite(entry.z) end
            rows[("%031.0f %s"):format(entry.x and (entry.x - x) ^ 2 + (entry.y - y) ^ 2 or 1e30, id)] = entry
        end
        return listed(rows, settings.entities)
    end
    local function age(moment) return moment and (clock() - moment) % 2 ^ 32 / 1000 or nil end
    -- What a body perceives. `sequence` grows whenever something of it has changed but the clocks.
    function self.facts(body)
        local own, entities = body.index or "player:" .. body.account, self.entities(body.cell)
        local me = entities[own] or {}
        entities[own] = nil
        local facts = { cell = body.cell, interior = world.grid(body.cell) == nil, embodiment = body.embodiment, region = "",
            level = 1, x = finite(me.x), y = finite(me.y), z = finite(me.z), health = me.health or health() }
        facts.entities = nearest(entities, facts.x, facts.y)
        if body.player then
            local data = body.player.data
            facts.region, facts.level = api.GetRegion(body.pid) or "", finite(api.GetLevel(body.pid), 1)
            facts.inventory, facts.strength = inventory(data), ((data.attributes or {}).Strength or {}).base
            facts.journal = journal(config and config.shareJournal and WorldInstance.data.journal or data.journal)
        else
            facts.inventory, facts.journal = inventory(LoadedCells[body.cell].data.objectData[own]), json.list()
        end
        local time, regions = WorldInstance.data.time or {}, WorldInstance.storedRegions or {}
        local region, talk, hour = regions[facts.region:lower()], self.talked[body.agent], finite(hourCounter or time.hour)
        facts.weather = WEATHERS[region and region.currentWeather or -1]
        facts.day, facts.hour = finite(time.daysPassed), math.floor(hour)
        facts.dialogue = talk and { entity = talk.entity, topic = talk.topic } or nil
        local text, last = json.encode(facts), seen[body.agent] or { 0 }
        if text ~= last[2] then seen[body.agent] = { last[1] + 1, text } end
        facts.sequence, facts.hour = seen[body.agent][1], hour
        facts.combat_age, facts.dialogue_age = age(self.fought[body.agent]), age(talk and talk.at)
        return facts
    end
    function self.dead(body)
        if body.player then return api.GetHealthCurrent(body.pid) <= 0 end
        return LoadedCells[body.cell].data.objectData[body.index].deathState ~= nil
    end
    local function row(body)
        local at = located(body)
        return { agent = body.agent, name = body.name, embodiment = body.embodiment, connected = at ~= nil,
            dead = at ~= nil and self.dead(at) }
    end
    function self.agents()
        local rows = {}
        for agent, body in pairs(all()) do rows[agent] = row(body) end
        return listed(rows, math.huge)
    end
    local function awake(body) return located(setmetatable({ asleep = false }, { __index = body })) end
    -- Begins a list of objects to send, with an actor or an object, or with a player.
    function self.select(cell, pid, entry)
        api.ClearObjectList(); api.SetObjectListPid(pid); api.SetObjectListCell(cell)
        if entry.pid then return api.SetPlayerAsObject(entry.pid) end
        local ref, mp = world.split(entry.id)
        api.SetObjectRefId(entry.ref_id or ""); api.SetObjectRefNum(ref); api.SetObjectMpNum(mp)
    end
    -- Takes a companion's object out of the world.
    local function remove(body)
        local at = awake(body) or api.refuse("NOT_CONNECTED", "no player is near the companion, so it can't be removed")
        self.select(at.cell, at.pid, { id = body.index, ref_id = body.ref_id })
        api.AddObject(); api.SendObjectDelete(true, false)
        LoadedCells[at.cell]:DeleteObjectData(body.index)
        body.index = nil
        return at.pid
    end
    -- Puts a companion beside a player. Its number is taken from the world's counter, as those of all spawned objects are.
    local function spawn(body, host)
        local description = api.GetCell(host)
        local cell = visited(description) or api.refuse("NOT_CONNECTED", "the host has not loaded a cell yet")
        local number = WorldInstance:GetCurrentMpNum() + 1
        local x, y, z = api.GetPosX(host) + 64, api.GetPosY(host), api.GetPosZ(host)
        WorldInstance:SetCurrentMpNum(number)
        api.SetCurrentMpNum(number)
        body.index = "0-" .. number
        cell:InitializeObjectData(body.index, body.ref_id)
        cell.data.objectData[body.index].location = { posX = x, posY = y, posZ = z, rotX = 0, rotY = 0, rotZ = 0 }
        table.insert(cell.data.packets.spawn, body.index)
        table.insert(cell.data.packets.actorList, body.index)
        self.select(description, host, { id = body.index, ref_id = body.ref_id })
        api.SetObjectPosition(x, y, z)
        api.SetObjectRotation(0, 0, 0); api.AddObject(); api.SendObjectSpawn(true, false)
    end
    function self.join(agent, name, embodiment, host)
        local body = all()[agent] or { agent = agent, name = name, embodiment = embodiment }
        if embodiment ~= "avatar" and embodiment ~= "companion" or body.embodiment ~= embodiment then
            api.refuse("BAD_REQUEST", "embodiment is avatar or companion, the one that the agent has")
        end
        if embodiment == "avatar" then body.account = body.account or json.utf8(name):lower()
        elseif settings.companion == "" then
            api.refuse("NOT_OFFERED", "set companion in settings.lua to the id of an NPC of the data files")
        end
        for pid, player in pairs(not body.account and Players or {}) do
            local wanted = here(pid) and (not host or account(player) == tostring(host):lower())
            body.ref_id = body.ref_id or settings.companion
            if wanted and not body.index then spawn(body, pid) end
        end
        if not awake(body) then api.refuse("NOT_CONNECTED", "no such player is connected") end
        body.asleep = nil
        keep(body)
        return row(body)
    end
    function self.leave(agent, mode)
        local body = all()[agent] or api.refuse("NO_AGENT", "no player and no companion has that name")
        if not MODES[mode] then api.refuse("BAD_REQUEST", "mode is dormant, suspend or despawn") end
        if body.index and mode ~= "dormant" then remove(body) end
        body.asleep, body.gone = true, mode == "despawn" and not body.account
        keep(body)
        return row(body)
    end
    function self.respawn(agent)
        local at, body = self.find(agent), all()[agent]
        if self.dead(at) and at.player then api.Resurrect(at.pid, 0)
        elseif self.dead(at) then spawn(body, remove(body)); keep(body) end
        return row(body)
    end
    return self
end

return world
