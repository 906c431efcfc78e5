"""What a benchmark writes: figures, tables and charts, with the machine that they were measured on."""
