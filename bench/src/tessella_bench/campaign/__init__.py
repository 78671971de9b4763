"""The campaign against false certificates, hangs and crashes."""
