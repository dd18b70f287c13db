"""Output to people: tables, the live view, reports. Remote text is shown as data, never as markup."""
