-- The functions of the server that these scripts call. A wrongly typed argument to one of them ends the server, even
-- within `pcall`: the error would have to leave a C++ function that must not throw. So each call is checked here first;
-- what does not fit is an ordinary Lua error, raised before the server sees the call. Kinds of arguments:
-- p unsigned short, e slot of equipment (bounds unchecked there), u unsigned int, i int, n double, s const char*,
-- d that of a cell (a number beyond an int ends the server), b bool, f name of a global function
local api = { sent = 0 }  -- how often something was sent to clients
api.SIGNATURES = {
    LogMessage = "ps", GetServerVersion = "", GetMillisecondsSinceServerStart = "", SetCurrentMpNum = "i",
    CreateTimer = "fi", StartTimer = "i", RestartTimer = "ii", GetCell = "p", GetRegion = "p", GetPosX = "p",
    GetPosY = "p", GetPosZ = "p", GetHealthBase = "p", GetHealthCurrent = "p", GetLevel = "p", SetCell = "pd",
    SendCell = "p", SetPos = "pnnn", SendPos = "p", Resurrect = "pu", EquipItem = "pesuin", SendEquipment = "p",
    ClearObjectList = "", SetObjectListPid = "p", SetObjectListCell = "d", SetObjectListConsoleCommand = "s",
    SetObjectRefId = "s", SetObjectRefNum = "i", SetObjectMpNum = "i", SetObjectPosition = "nnn",
    SetObjectRotation = "nnn", SetObjectActivatingPid = "p", SetPlayerAsObject = "p", AddObject = "",
    SetObjectDialogueChoiceType = "u", SetObjectDialogueChoiceTopic = "s", SendObjectActivate = "bb",
    SendObjectDialogueChoice = "bb", SendObjectSpawn = "bb", SendObjectDelete = "bb", SendConsoleCommand = "bb",
    ReadCellActorList = "d", GetActorListSize = "", GetActorRefNum = "u", GetActorMpNum = "u", GetActorPosX = "u",
    GetActorPosY = "u", GetActorPosZ = "u", GetActorHealthBase = "u", GetActorHealthCurrent = "u",
    DoesActorHavePosition = "u", DoesActorHaveStatsDynamic = "u", ClearActorList = "", SetActorListPid = "p",
    SetActorListCell = "d", SetActorRefNum = "i", SetActorMpNum = "i", SetActorAIAction = "u",
    SetActorAITargetToPlayer = "p", SetActorAITargetToObject = "ii", SetActorAICoordinates = "nnn",
    SetActorAIRepetition = "b", AddActor = "", SendActorAI = "bb",
}

local function whole(low, high)
    return function(value) return type(value) == "number" and value % 1 == 0 and value >= low and value <= high end
end
local FITS = {
    p = whole(0, 65535), e = whole(0, 18), u = whole(0, 2 ^ 32 - 1), i = whole(-2 ^ 31, 2 ^ 31 - 1),
    n = function(value) return type(value) == "number" and value == value and math.abs(value) < 3e38 end,
    s = function(value) return type(value) == "string" and not value:find("%z") end,
    d = function(value) return type(value) == "string" and not value:find("%z") and not value:find(("%d"):rep(8)) end,
    b = function(value) return type(value) == "boolean" end,
    f = function(value) return type(value) == "string" and type(_G[value]) == "function" end,
}

for name, kinds in pairs(api.SIGNATURES) do
    api[name] = function(...)
        local count = select("#", ...)
        if count ~= #kinds then error(("%s takes %d arguments, not %d"):format(name, #kinds, count), 2) end
        for index = 1, count do
            local value = select(index, ...)
            if not FITS[kinds:sub(index, index)](value) then
                error(("argument %d of %s can't be %s %s"):format(index, name, type(value), tostring(value)), 2)
            end
        end
        if type(tes3mp[name]) ~= "function" then error("this server has no tes3mp." .. name, 2) end
        if name:find("^Send") or name == "Resurrect" then api.sent = api.sent + 1 end
        return tes3mp[name](...)
    end
end
-- Ends the operation at hand with an error that its caller is told.
function api.refuse(code, message) error({ code = code, message = message }, 0) end

-- Calls `action`; then true and its result, or false and what it refused with, or false and a text for the log.
function api.try(action, ...)
    local arguments, count = { ... }, select("#", ...)
    return xpcall(function() return action(unpack(arguments, 1, count)) end, function(problem)
        return type(problem) == "table" and problem or debug.traceback(tostring(problem))
    end)
end

return api
