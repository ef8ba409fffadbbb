"""Why a message did not arrive."""


class NotDelivered(Exception):
    """This try failed; another one may not. Its words are shown in the admin."""


class AddressRefused(NotDelivered):
    """The address is not one that Dexweb sends to; trying again changes nothing."""
