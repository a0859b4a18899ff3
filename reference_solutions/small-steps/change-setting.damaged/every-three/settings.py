"""Settings of the mail client."""

HOST = "mail.example.org"
PORT = 587
MAX_RETRIES = 5
MAX_ATTACHMENTS = 5
RETRY_SECONDS = 50
SIGNATURE = "Kind regards,\nthe club"
