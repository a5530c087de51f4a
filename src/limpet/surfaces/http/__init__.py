"""Operations over HTTP: one route that calls any row, and the few that look after the server itself."""
