// Plots: images from the server, with text alternatives.

async function plotsSection(data, runs) {
  const { plots } = await data.plots(runs);
  if (!plots.length) return section("Plots", {}, element("p", { class: "soft" }, "There is nothing to plot yet."));
  return section(
    "Plots",
    { class: "plots-section" },
    element(
      "div",
      { class: "plots" },
      plots.map((plot) => element("figure", {}, svgImage(plot.svg, plot.words))),
    ),
  );
}
