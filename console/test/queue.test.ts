import { expect, test } from "vitest";
import { Queue } from "../src/insights/queue";

/** Work that ends when it is told to. */
function work() {
	let end = () => {};
	const done = new Promise<void>((resolve) => {
		end = resolve;
	});
	return { run: () => done, end };
}

const never = new AbortController().signal;
const turn = () => new Promise((resolve) => setTimeout(resolve, 0));

test("only so many run at once, in the order in which they came", async () => {
	const queue = new Queue(2);
	const began: number[] = [];
	const works = [work(), work(), work(), work()];
	const all = works.map((w, i) =>
		queue.run(() => {
			began.push(i);
			return w.run();
		}, never),
	);
	await turn();
	expect(began).toEqual([0, 1]);
	works[1]?.end();
	await turn();
	expect(began).toEqual([0, 1, 2]);
	for (const w of works) w.end();
	await Promise.all(all);
	expect(began).toEqual([0, 1, 2, 3]);
});

test("what is given up while it waits never begins, and holds nobody up", async () => {
	const queue = new Queue(1);
	const first = work();
	const control = new AbortController();
	const began: string[] = [];
	const one = queue.run(first.run, never);
	const two = queue.run(async () => began.push("two"), control.signal);
	const three = queue.run(async () => began.push("three"), never);
	control.abort();
	await expect(two).rejects.toBe(control.signal.reason);
	first.end();
	await Promise.all([one, three]);
	expect(began).toEqual(["three"]);
	await expect(queue.run(async () => 1, control.signal)).rejects.toBe(control.signal.reason);
	await expect(queue.run(async () => 1, never)).resolves.toBe(1);
});

test("a failure makes room for the next", async () => {
	const queue = new Queue(1);
	const failed = queue.run(() => Promise.reject(new Error("no")), never);
	const next = queue.run(async () => "yes", never);
	await expect(failed).rejects.toThrow("no");
	await expect(next).resolves.toBe("yes");
});
