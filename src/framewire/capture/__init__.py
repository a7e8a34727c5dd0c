"""Recording what a node says and hears, as Parquet that any tool reads."""
