/** The graph: exploring from symbol to symbol, and Cypher. */

import type { Route } from "../../lib/route";
import { Tabs } from "../../ui/parts";
import { Cypher } from "./cypher";
import { Explore } from "./explore";

export function Graph({ route }: { route: Route }) {
  const isCypher = route.rest[0] === "cypher";
  return (
    <>
      <Tabs name="Ways to look at the graph" tabs={[["#/graph/explore", "Explore"], ["#/graph/cypher", "Cypher"]]} current={isCypher ? "#/graph/cypher" : "#/graph/explore"} />
      {isCypher ? <Cypher /> : <Explore start={route.query.get("symbol")} />}
    </>
  );
}
