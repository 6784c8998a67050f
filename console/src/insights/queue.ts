/** Runs work, of which only some may go on at once. The rest waits for its turn, in the order in which it came. */
export class Queue {
	private running = 0;
	private readonly waiting: (() => void)[] = [];

	constructor(private readonly most: number) {}

	/** Does the work when it is its turn. Work that is given up while it waits never begins. */
	async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
		await this.turn(signal);
		try {
			return await work();
		} finally {
			this.running--;
			this.waiting.shift()?.();
		}
	}

	private turn(signal: AbortSignal): Promise<void> {
		if (signal.aborted) return Promise.reject(signal.reason);
		if (this.running < this.most) {
			this.running++;
			return Promise.resolve();
		}
		return new Promise((resolve, reject) => {
			const begin = () => {
				signal.removeEventListener("abort", leave);
				this.running++;
				resolve();
			};
			const leave = () => {
				this.waiting.splice(this.waiting.indexOf(begin), 1);
				reject(signal.reason);
			};
			signal.addEventListener("abort", leave, { once: true });
			this.waiting.push(begin);
		});
	}
}

/** The requests of tiles: a page with many of them leaves room for everybody else. */
export const tileQueue = new Queue(3);
