// Runs endpoints from a page, with tokens from the page's own backend.

// AnalyticsError is the reason why a run failed. status is the HTTP status; retryAfter, if the API sent it, is in seconds.
export class AnalyticsError extends Error {
  constructor(message, status, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

const longestWait = 10; // seconds that a run waits in total before it gives up

export class Analytics {
  #address;
  #access; // a promise of the backend's response {api, customer, token}, so that concurrent runs share it

  // address is the backend's address for tokens.
  constructor(address) {
    this.#address = address;
  }

  // customer returns the customer whose rows the token can read.
  async customer() {
    return (await this.#token()).customer;
  }

  // run returns the API's response: rows as objects in results, next_cursor, and more. It renews an expired token once, and
  // retries when the API is busy. body has variables, limit and cursor; signal aborts the run.
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
      // If the API no longer knows the token, or the origin is wrong, the browser hides the response.
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
      this.#access = undefined; // the next run retries
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
