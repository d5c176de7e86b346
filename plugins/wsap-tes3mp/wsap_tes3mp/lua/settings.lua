-- Settings of the WSAP script. This is the one file that a server's owner changes.
return {
    -- Shared with the bridge, which is the only one that may connect. Without a token nothing is opened.
    token = "",
    -- Where the script listens, on 127.0.0.1.
    port = 8766,
    -- "auto" tries "luasocket", "ffi" and "mailbox", in this order; or one of these.
    transport = "auto",
    -- For the mailbox: a folder that the server and the bridge can both write, such as "/srv/tes3mp/wsap".
    mailbox = "",
    -- Account names of the players whose characters agents may act with; "*" for all.
    avatars = "*",
    -- Id of the NPC in your data files that companions are made of, such as "imperial guard"; "" for no companions.
    companion = "",
    -- How many beings and things one perception holds at most, the nearest first.
    entities = 100,
}
