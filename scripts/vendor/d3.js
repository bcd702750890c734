// Scales, lines, contours and zoom: the graph and the plots. Not d3 as a whole, which has twenty more modules.
export { extent } from "d3-array";
export { contours } from "d3-contour";
export { format } from "d3-format";
export { scaleLinear } from "d3-scale";
export { select } from "d3-selection";
export { line } from "d3-shape";
export { zoom, zoomIdentity } from "d3-zoom";
