-- Bodies of agents, and what the server knows about the world around them.
--
-- An avatar is a connected player's character, found by the name of its account: player ids are reused. A companion is
-- an NPC that this script has spawned; it stands still unless some client holds the authority over its cell.
local world = {}

local WEATHERS = { [0] = "clear", "cloudy", "foggy", "overcast", "rain", "thunder", "ash", "blight", "snow", "blizzard" }
local EXTERIOR = "^(%-?%d+), (%-?%d+)$"
local CELL_SIZE = 8192
local MOST_ITEMS = 500

function world.grid(cell)
    local x, y = cell:match(EXTERIOR)
    return tonumber(x), tonumber(y)
end

function world.cell_at(x, y)
    return ("%d, %d"):format(math.floor(x / CELL_SIZE), math.floor(y / CELL_SIZE))
end

function world.split(index)
    local ref, mp = index:match("^(%d+)%-(%d+)$")
    return tonumber(ref), tonumber(mp)
end

local function contains(list, wanted)
    for _, value in pairs(type(list) == "table" and list or {}) do
        if value == wanted then return true end
    end
    return false
end

function world.new(parts)
    local api, json, settings, clock = parts.api, parts.json, parts.settings, parts.clock
    local self = { bodies = {}, fought = {}, talked = {} }
    local seen = {}  -- agent -> { number, text } of its last facts
    local loaded = false

    local function account(player)
        return (json.utf8(tostring(player.accountName or player.name)):lower())
    end

    local function here(pid)
        local player = Players[pid]
        return player and player:IsLoggedIn() and player or nil
    end
    self.here = here

    local function finite(value, default)
        if type(value) ~= "number" or value ~= value or math.abs(value) > 1e15 then return default or 0 end
        return value
    end

    -- Cells of the scripts may be loaded for a moment without the server itself having them: reading such a cell's
    -- actors ends the server. A visitor means that it has it.
    local function visited(cell)
        local found = cell and LoadedCells[cell]
        for _, pid in pairs(found and found.visitors or {}) do
            if here(pid) then return found end
        end
        return nil
    end
    self.visited = visited

    function self.authority(cell)
        return cell and cell.authority and contains(cell.visitors, cell.authority) and here(cell.authority)
            and cell.authority or nil
    end

    -- Companions outlive a restart of the server with the world's data.
    local function saved()
        local data = WorldInstance.data
        data.customVariables = data.customVariables or {}
        data.customVariables.wsap_companions = data.customVariables.wsap_companions or {}
        return data.customVariables.wsap_companions
    end

    local function save(body)
        saved()[body.agent] = body.embodiment == "companion" and not body.gone
            and { index = body.index, ref_id = body.ref_id, name = body.name, asleep = body.asleep } or nil
        if WorldInstance.QuicksaveToDrive then WorldInstance:QuicksaveToDrive() end
    end

    local function all()
        if not loaded and WorldInstance then
            loaded = true
            for agent, old in pairs(saved()) do
                if not self.bodies[agent] and type(old) == "table" then
                    self.bodies[agent] = { agent = agent, name = old.name, embodiment = "companion",
                        index = old.index, ref_id = old.ref_id, asleep = old.asleep }
                end
            end
        end
        local list, taken = {}, {}
        for _, body in pairs(self.bodies) do
            list[#list + 1] = body
            if body.account then taken[body.account] = true end
        end
        for pid, player in pairs(Players) do
            local name = here(pid) and account(player)
            if name and not taken[name] and not self.bodies[name]
                and (settings.avatars == "*" or contains(settings.avatars, name)) then
                list[#list + 1] = { agent = name, name = name, embodiment = "avatar", account = name }
            end
        end
        return list
    end

    -- Where a body is now: `pid` and `player` of an avatar, `cell` and `index` of a companion.
    local function locate(body)
        if body.embodiment == "avatar" then
            for pid, player in pairs(Players) do
                if here(pid) and account(player) == body.account then
                    body.pid, body.player, body.cell = pid, player, api.GetCell(pid)
                    return true
                end
            end
            body.pid, body.player = nil, nil
            return false
        end
        for description, cell in pairs(LoadedCells) do
            local data = body.index and cell.data.objectData[body.index]
            if data and data.refId and visited(description) then
                body.cell, body.pid = description, self.authority(cell)
                return body.pid ~= nil
            end
        end
        body.cell, body.pid = nil, nil
        return false
    end

    function self.find(agent)
        for _, body in ipairs(all()) do
            if body.agent == agent then
                if body.asleep then return nil, "NOT_CONNECTED", "the agent's body is asleep; join first" end
                if locate(body) then return body end
                return nil, "NOT_CONNECTED", body.embodiment == "avatar" and "the player is not connected"
                    or "no player is near the companion, so nothing moves it"
            end
        end
        return nil, "NO_AGENT", "no player and no companion has that name"
    end

    -- Actors that clients have reported for a cell; their ref ids come back empty and are in the cell's own records.
    local function actors(description, add)
        api.ReadCellActorList(description)
        for at = 0, api.GetActorListSize() - 1 do
            local entry = { id = api.GetActorRefNum(at) .. "-" .. api.GetActorMpNum(at), kind = "actor", cell = description }
            if api.DoesActorHavePosition(at) then
                entry.x, entry.y, entry.z = api.GetActorPosX(at), api.GetActorPosY(at), api.GetActorPosZ(at)
            end
            if api.DoesActorHaveStatsDynamic(at) then
                entry.health = { current = finite(api.GetActorHealthCurrent(at)), max = finite(api.GetActorHealthBase(at)) }
            end
            add(entry)
        end
    end

    local function near(cell)
        local x, y = world.grid(cell)
        if not x then return { cell } end
        local cells = {}
        for dx = -1, 1 do
            for dy = -1, 1 do cells[#cells + 1] = ("%d, %d"):format(x + dx, y + dy) end
        end
        return cells
    end

    -- Everybody and everything in a cell and, outside, the cells around it, by id.
    function self.entities(cell, without)
        local found, cells = {}, {}
        for _, description in ipairs(near(cell)) do
            cells[description] = true
            local records = visited(description)
            if records then
                actors(description, function(entry) found[entry.id] = entry end)
                local packets = records.data.packets or {}
                for id, data in pairs(records.data.objectData) do
                    local entry, place = found[id], data.location
                    if data.refId and data.state ~= false and not contains(packets.delete, id) and world.split(id) then
                        entry = entry or { id = id, cell = description,
                            kind = contains(packets.actorList, id) and "actor" or "object" }
                        entry.ref_id = tostring(data.refId)
                        if not entry.x and type(place) == "table" then
                            entry.x, entry.y, entry.z = place.posX, place.posY, place.posZ
                        end
                        if data.deathState and entry.kind == "actor" then
                            entry.health = { current = 0, max = entry.health and entry.health.max or 0 }
                        end
                        found[id] = entry
                    end
                end
            end
        end
        for pid, player in pairs(Players) do
            if here(pid) and cells[api.GetCell(pid) or ""] then
                local id = "player:" .. account(player)
                found[id] = { id = id, ref_id = "player", kind = "player", name = tostring(player.name), pid = pid,
                    cell = api.GetCell(pid), x = api.GetPosX(pid), y = api.GetPosY(pid), z = api.GetPosZ(pid),
                    health = { current = finite(api.GetHealthCurrent(pid)), max = finite(api.GetHealthBase(pid)) } }
            end
        end
        if without then found[without] = nil end
        return found
    end

    local function inventory(data, list)
        local worn = {}
        for _, item in pairs(data.equipment or {}) do
            if type(item) == "table" and item.refId then worn[item.refId] = true end
        end
        for _, item in pairs(data.inventory or {}) do
            if #list >= MOST_ITEMS then break end
            if type(item) == "table" and type(item.refId) == "string" and finite(item.count) >= 1 then
                list[#list + 1] = { ref_id = item.refId, count = item.count, equipped = worn[item.refId] or false }
            end
        end
        table.sort(list, function(a, b) return a.ref_id .. a.count < b.ref_id .. b.count end)
        return list
    end

    local function journal(entries, list)
        local stages = {}
        for _, entry in pairs(entries or {}) do
            if type(entry) == "table" and type(entry.quest) == "string" and type(entry.index) == "number" then
                stages[entry.quest] = math.max(stages[entry.quest] or 0, entry.index)
            end
        end
        for quest, index in pairs(stages) do list[#list + 1] = { quest = quest, index = index } end
        table.sort(list, function(a, b) return a.quest < b.quest end)
        while #list > MOST_ITEMS do list[#list] = nil end
        return list
    end

    local function sorted(entities, x, y)
        local list = json.list()
        for _, entry in pairs(entities) do
            entry.pid = nil
            if entry.x then
                entry.x, entry.y, entry.z = finite(entry.x), finite(entry.y), finite(entry.z)
            end
            list[#list + 1] = entry
        end
        local function far(entry)
            return entry.x and (entry.x - x) ^ 2 + (entry.y - y) ^ 2 or math.huge
        end
        table.sort(list, function(a, b)
            local left, right = far(a), far(b)
            if left ~= right then return left < right end
            return a.id < b.id
        end)
        while #list > settings.entities do list[#list] = nil end
        return list
    end

    local function age(moment)
        return moment and (clock() - moment) % 2 ^ 32 / 1000 or nil
    end

    -- What a body perceives. `sequence` grows whenever something of it has changed but the clocks.
    function self.facts(body)
        local facts = { cell = body.cell, interior = world.grid(body.cell) == nil, embodiment = body.embodiment,
            inventory = json.list(), journal = json.list() }
        local own
        if body.embodiment == "avatar" then
            local pid, data = body.pid, body.player.data
            own = "player:" .. body.account
            facts.x, facts.y, facts.z = api.GetPosX(pid), api.GetPosY(pid), api.GetPosZ(pid)
            facts.region, facts.level = api.GetRegion(pid) or "", finite(api.GetLevel(pid), 1)
            local strength = (data.attributes or {}).Strength
            facts.strength = strength and strength.base
            facts.health = { current = finite(api.GetHealthCurrent(pid)), max = finite(api.GetHealthBase(pid)) }
            inventory(data, facts.inventory)
            journal(config and config.shareJournal and WorldInstance.data.journal or data.journal, facts.journal)
        else
            own = body.index
            local me = self.entities(body.cell)[own] or {}
            facts.x, facts.y, facts.z, facts.region, facts.level = me.x, me.y, me.z, "", 1
            facts.health = me.health or { current = 0, max = 0 }
            inventory(LoadedCells[body.cell].data.objectData[own], facts.inventory)
        end
        facts.x, facts.y, facts.z = finite(facts.x), finite(facts.y), finite(facts.z)
        facts.entities = sorted(self.entities(body.cell, own), facts.x, facts.y)
        local time, regions = WorldInstance.data.time or {}, WorldInstance.storedRegions or {}
        local region = regions[facts.region:lower()]
        facts.weather = WEATHERS[region and region.currentWeather or -1]
        facts.day, facts.hour = finite(time.daysPassed), math.floor(finite(hourCounter or time.hour))
        local talk = self.talked[body.agent]
        facts.dialogue = talk and { entity = talk.entity, topic = talk.topic } or nil
        local text, last = json.encode(facts), seen[body.agent] or { 0 }
        if text ~= last[2] then seen[body.agent] = { last[1] + 1, text } end
        facts.sequence, facts.hour = seen[body.agent][1], finite(hourCounter or time.hour)
        facts.combat_age, facts.dialogue_age = age(self.fought[body.agent]), age(talk and talk.at)
        return facts
    end

    -- Whether something that `facts` tells has changed since it was asked last.
    function self.changed(body)
        local before = seen[body.agent]
        if not before then return nil end
        local sequence = self.facts(body).sequence
        return sequence ~= before[1] and sequence or nil
    end

    function self.dead(body)
        if body.embodiment == "avatar" then return api.GetHealthCurrent(body.pid) <= 0 end
        local data = LoadedCells[body.cell].data.objectData[body.index]
        return data.deathState ~= nil
    end

    local function row(body)
        local connected = not body.asleep and locate(body)
        return { agent = body.agent, name = body.name, embodiment = body.embodiment, connected = connected,
            dead = connected and self.dead(body) }
    end

    function self.agents()
        local list = json.list()
        for _, body in ipairs(all()) do list[#list + 1] = row(body) end
        table.sort(list, function(a, b) return a.agent < b.agent end)
        return list
    end

    -- Takes a companion's object out of the world.
    local function remove(body)
        locate(body)
        local cell = visited(body.cell)
        if not cell then return nil, "NOT_CONNECTED", "no player is near the companion, so it can't be removed" end
        local ref, mp = world.split(body.index)
        api.ClearObjectList()
        api.SetObjectListPid(cell.authority or select(2, next(cell.visitors)))
        api.SetObjectListCell(body.cell)
        api.SetObjectRefNum(ref)
        api.SetObjectMpNum(mp)
        api.AddObject()
        api.SendObjectDelete(true, false)
        cell:DeleteObjectData(body.index)
        body.index = nil
        return true
    end

    -- Puts a companion beside a player. The number is taken from the world's own counter, as all spawned objects do.
    local function spawn(body, host)
        local description = api.GetCell(host)
        local cell = visited(description)
        if not cell then return nil, "NOT_CONNECTED", "the host has not loaded a cell yet" end
        local number = WorldInstance:GetCurrentMpNum() + 1
        local place = { posX = api.GetPosX(host) + 64, posY = api.GetPosY(host), posZ = api.GetPosZ(host),
            rotX = 0, rotY = 0, rotZ = 0 }
        WorldInstance:SetCurrentMpNum(number)
        api.SetCurrentMpNum(number)
        body.index = "0-" .. number
        cell:InitializeObjectData(body.index, body.ref_id)
        cell.data.objectData[body.index].location = place
        table.insert(cell.data.packets.spawn, body.index)
        table.insert(cell.data.packets.actorList, body.index)
        api.ClearObjectList()
        api.SetObjectListPid(host)
        api.SetObjectListCell(description)
        api.SetObjectRefId(body.ref_id)
        api.SetObjectRefNum(0)
        api.SetObjectMpNum(number)
        api.SetObjectPosition(place.posX, place.posY, place.posZ)
        api.SetObjectRotation(0, 0, 0)
        api.AddObject()
        api.SendObjectSpawn(true, false)
        save(body)
        return true
    end

    local function host_of(name)
        for pid, player in pairs(Players) do
            if here(pid) and (not name or account(player) == tostring(name):lower()) then return pid end
        end
        return nil
    end

    function self.join(agent, name, embodiment, host)
        local body = self.bodies[agent]
        if body and body.embodiment ~= embodiment then
            return nil, "BAD_REQUEST", "the agent has a body of the other kind; despawn it first"
        end
        if embodiment == "avatar" then
            body = body or { agent = agent, embodiment = "avatar", name = name, account = json.utf8(name):lower() }
            if not locate(body) then return nil, "NOT_CONNECTED", "no player is connected with the account " .. body.account end
        elseif embodiment == "companion" then
            body = body or { agent = agent, embodiment = "companion", name = name, ref_id = settings.companion }
            if type(body.ref_id) ~= "string" or body.ref_id == "" then
                return nil, "NOT_OFFERED", "set companion in settings.lua to the id of an NPC of your data files"
            end
            if not body.index then
                local pid = host_of(host)
                if not pid then return nil, "NOT_CONNECTED", "no player is connected whom a companion could accompany" end
                local done, code, message = spawn(body, pid)
                if not done then return nil, code, message end
            end
        else return nil, "BAD_REQUEST", "embodiment is avatar or companion" end
        body.asleep = nil
        self.bodies[agent] = body
        save(body)
        return row(body)
    end

    function self.leave(agent, mode)
        local body
        for _, candidate in ipairs(all()) do body = candidate.agent == agent and candidate or body end
        if not body then return nil, "NO_AGENT", "no player and no companion has that name" end
        if mode ~= "dormant" and mode ~= "suspend" and mode ~= "despawn" then
            return nil, "BAD_REQUEST", "mode is dormant, suspend or despawn"
        end
        if body.index and mode ~= "dormant" then
            local done, code, message = remove(body)
            if not done then return nil, code, message end
        end
        self.bodies[agent], body.asleep, body.gone = body, true, mode == "despawn"
        if body.gone and body.embodiment == "companion" then self.bodies[agent] = nil end
        save(body)
        return { agent = agent, mode = mode }
    end

    function self.respawn(agent)
        local body, code, message = self.find(agent)
        if not body then return nil, code, message end
        if self.dead(body) and body.embodiment == "avatar" then api.Resurrect(body.pid, 0)
        elseif self.dead(body) then
            local host = body.pid
            local done, why, text = remove(body)
            if done then done, why, text = spawn(body, host) end
            if not done then return nil, why, text end
        end
        return row(body)
    end

    return self
end

return world
