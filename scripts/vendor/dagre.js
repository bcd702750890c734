// Layout of layered graphs: static/shared/graph.js.
export { Graph, layout } from "@dagrejs/dagre";
