"""The engine `tes3mp`: a TES3MP server, through the script that runs in it."""
