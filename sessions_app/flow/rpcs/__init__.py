"""What the outside may ask of a session, by subject. `SessionFlow` is all of them."""
