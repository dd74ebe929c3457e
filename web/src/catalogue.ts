/** The catalogue of `plinth serve`: its table is sorted, filtered, and follows the bundles while the page is seen. */
import "./styles/fonts.css";
import "./styles/page.css";
import "./styles/tables.css";
import "./styles/narrow.css";
import "./styles/catalogue.css";
import { CatalogueView } from "./views/catalogue";
import { CatalogueFollower } from "./views/follower";

const view = new CatalogueView(document);
const follower = new CatalogueFollower(
  document.querySelector("main")?.dataset["state"] ?? "",
  (page) => view.replace(page),
  (text) => view.connection(text),
);
document.addEventListener("visibilitychange", () => follower.follow(!document.hidden));
follower.follow(!document.hidden);
