/** Asks the server of the catalogue for changes. */

/** How long to wait after an answer that does not say it, and before trying again. */
const RETRY_S = 3;
const NOT_CONNECTED = "Not connected: trying again. What is shown may be old.";
const REFUSED =
  "The server has refused: it was started again, and has printed another address. What is shown is old.";

/** Asks for changes again and again while the page is seen, and as seldom as the server says. */
export class CatalogueFollower {
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isAsking = false;
  #isSeen = false;

  constructor(
    private state: string,
    private readonly onPage: (page: Document) => void,
    private readonly onConnection: (text: string) => void,
  ) {}

  /** Begins or ends asking, as the page is seen or not. */
  follow(isSeen: boolean): void {
    this.#isSeen = isSeen;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (isSeen && !this.#isAsking) void this.#ask();
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    const wait_s = await this.#answered().catch(() => {
      this.onConnection(NOT_CONNECTED);
      return RETRY_S;
    });
    this.#isAsking = false;
    if (this.#isSeen) this.#timer = setTimeout(() => void this.#ask(), wait_s * 1000);
  }

  /** Shows what has changed; how long to wait until the next question. */
  async #answered(): Promise<number> {
    const answer = await fetch(`changes?since=${encodeURIComponent(this.state)}`);
    if (answer.status === 200) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      this.state = page.querySelector("main")?.dataset["state"] ?? "";
      this.onPage(page);
    }
    const isAnswered = answer.status === 200 || answer.status === 204;
    this.onConnection(isAnswered ? "" : answer.status === 403 ? REFUSED : NOT_CONNECTED);
    return Number(answer.headers.get("Plinth-Ask-Again-S") ?? RETRY_S);
  }
}
