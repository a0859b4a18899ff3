"""Settings of the mail client."""

HOST = "mail.example.org"
PORT = 587
MAX_RETRIES = 3
MAX_ATTACHMENTS = 3
RETRY_SECONDS = 30
SIGNATURE = "Kind regards,\nthe club"
