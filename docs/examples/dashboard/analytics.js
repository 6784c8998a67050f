// Runs endpoints from a page, with tokens that the page's own backend gives out.

// AnalyticsError says why a run gave no rows. status is that of HTTP; retryAfter, where the API names it, are seconds to wait.
export class AnalyticsError extends Error {
  constructor(message, status, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

const longestWait = 10; // seconds that a run waits by itself for its turn, taken together

export class Analytics {
  #address;
  #access; // of the backend's answer {api, customer, token}, a promise, so that runs at one time share it

  // address is where the backend gives out tokens.
  constructor(address) {
    this.#address = address;
  }

  // customer is whose rows the token opens.
  async customer() {
    return (await this.#token()).customer;
  }

  // run gives the API's answer: rows as objects in results, next_cursor, and more. A token that has ended is renewed once, and a
  // busy API asked again when it says so. body has variables, limit and cursor; signal ends the run.
  async run(endpoint, body, signal) {
    for (let renewed = false, waited = 0; ; ) {
      const access = this.#token();
      const { api, token } = await access;
      const answer = await fetch(`${api}/endpoints/${encodeURIComponent(endpoint)}/run.objects`, {
        method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: JSON.stringify(body),
        signal,
      }).catch((error) => {
        if (renewed || signal?.aborted) throw error;
      });
      if (answer?.ok) return answer.json();
      // The browser hides the refusal of a token that the API does not know any more, as it hides that of a wrong origin.
      if (!renewed && (!answer || answer.status === 401)) {
        renewed = true;
        if (this.#access === access) this.#access = undefined; // unless another run has renewed it already
        continue;
      }
      const retryAfter = Number(answer.headers.get("Retry-After")) || undefined;
      if ((answer.status === 429 || answer.status === 503) && waited + retryAfter <= longestWait) {
        waited += retryAfter;
        await wait(retryAfter, signal);
        continue;
      }
      const { detail } = await answer.json().catch(() => ({}));
      throw new AnalyticsError(detail ?? `The API answered with ${answer.status}.`, answer.status, retryAfter);
    }
  }

  #token() {
    return (this.#access ??= this.#fetchToken().catch((error) => {
      this.#access = undefined; // the next run tries again
      throw error;
    }));
  }

  async #fetchToken() {
    const answer = await fetch(this.#address, { method: "POST" });
    if (!answer.ok) throw new AnalyticsError("You are not signed in, or the site has no access to the API.", answer.status);
    return answer.json();
  }
}

function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
