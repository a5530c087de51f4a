"""Operations as MCP tools: over stdio (`limpet mcp`), and at `/mcp` of the daemon."""
