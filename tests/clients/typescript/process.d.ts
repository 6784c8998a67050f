// All that the clients use of Node.
declare const process: { env: Record<string, string | undefined> };
