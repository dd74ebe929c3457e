/** The page of a running run, which `plinth serve` shows: it follows the stream of the bundle's live log. */
import "./styles/fonts.css";
import "./styles/page.css";
import "./styles/tables.css";
import "./styles/charts.css";
import "./styles/narrow.css";
import "./styles/live.css";
import type { LiveEnd, LiveMessage, LivePage } from "./format/live";
import { LiveRun } from "./model/live";
import { contents } from "./views/chart";
import { LiveView } from "./views/live";

/** The stream, closed while nobody sees the page: a browser has few connections to one server for all of its pages. */
class Stream {
  #source: EventSource | null = null;
  #place = "";
  #hasEnded = false;

  constructor(
    private readonly address: string,
    private readonly onMessage: (message: LiveMessage) => void,
    private readonly onEnd: (end: LiveEnd) => void,
    private readonly onConnection: (text: string) => void,
  ) {
    document.addEventListener("visibilitychange", () => this.follow());
  }

  /** Opens or closes the stream, as the page is seen or not. */
  follow(): void {
    const isWanted = !document.hidden && !this.#hasEnded;
    if (isWanted && this.#source === null) this.#open();
    if (!isWanted) this.#close();
  }

  #open(): void {
    // The browser sends the place itself when it connects again, but not in a new stream.
    const source = new EventSource(`${this.address}?after=${encodeURIComponent(this.#place)}`);
    this.#source = source;
    source.addEventListener("open", () => this.onConnection(""));
    source.addEventListener("message", (event: MessageEvent<string>) => {
      this.#place = event.lastEventId;
      this.onMessage(JSON.parse(event.data));
    });
    source.addEventListener("end", (event: MessageEvent<string>) => {
      this.#hasEnded = true;
      this.#close();
      this.onEnd(JSON.parse(event.data));
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CONNECTING)
        this.onConnection("Not connected: trying again. What is shown may be old.");
      else {
        this.#close();
        this.onConnection(
          "Not connected: the server has refused. If it was started again, open the address that it printed; else load this page again.",
        );
      }
    });
  }

  #close(): void {
    this.#source?.close();
    this.#source = null;
  }
}

function start(): void {
  const main = document.querySelector("main");
  const page: LivePage = JSON.parse(document.getElementById("plinth-live")?.textContent ?? "");
  if (!main) throw new Error("the page has no main element");
  const run = new LiveRun();
  let end: LiveEnd | null = null;
  const view = new LiveView(page, main.dataset["report"] ?? "/");
  main.append(...view.elements);

  let isDue = false;
  const draw = () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      view.show(run, end);
    });
  };
  const stream = new Stream(
    page.events,
    (message) => {
      run.read(message);
      draw();
    },
    (ended) => {
      end = ended;
      draw();
    },
    (text) => view.connection(text),
  );
  draw();
  stream.follow();
  window.plinth = { charts: contents };
}

start();
