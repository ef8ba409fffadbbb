"""Steps: the activities of a session, which touch the world and report what came of it."""
