import { runInNewContext } from "node:vm";

/** What a function returns; an error if it is not done in a minute. For work that takes milliseconds, or hours if something is wrong with it. */
export function bounded<T>(run: () => T): T {
	return runInNewContext("run()", { run }, { timeout: 60_000 }) as T;
}
