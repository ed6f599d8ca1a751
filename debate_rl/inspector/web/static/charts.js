// Charts of metrics.jsonl on a run's page, drawn by uPlot.
"use strict";
(() => {
  const place = document.querySelector("#course");
  if (!place || typeof uPlot === "undefined") return;
  const POLL_MS = 5000;
  const COLOURS = ["--solution", "--comparison", "--evaluation", "--right", "--wrong", "--lit"];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const address = (run, names) => `../${encodeURIComponent(run)}/metrics.json?names=${names.map(encodeURIComponent).join(",")}`;
  const plots = [];
  let here = null;

  // One chart: some metrics of this run, and of the runs that are laid over it.
  const make = (title, names, range, unit) => {
    const figure = document.createElement("figure");
    figure.className = "plot";
    figure.dataset.testid = `plot-${title.toLowerCase().replaceAll(" ", "-")}`;
    const caption = document.createElement("figcaption");
    caption.textContent = unit ? `${title} (${unit})` : title;
    const canvas = document.createElement("div");
    figure.append(caption, canvas);
    const plot = { figure, canvas, names, range, drawn: null };
    plots.push(plot);
    return plot;
  };

  const draw = async (plot) => {
    const runs = [here.run, ...overlaid()];
    const found = await Promise.all(runs.map(async (run) => (await fetch(address(run, plot.names))).json()));
    const steps = [...new Set(found.flatMap((one) => one.steps))].sort((a, b) => a - b);
    const named = (step) => (step === -1 ? "before" : step);  // held-out figures before the first step
    const series = [{ label: "step", value: (_, step) => (step === null ? "–" : named(step)) }];
    const data = [steps];
    found.forEach((one, number) => {
      const at = new Map(one.steps.map((step, index) => [step, index]));
      for (const name of plot.names) {
        const values = one.values[name];
        if (!values) continue;
        data.push(steps.map((step) => (at.has(step) ? values[at.get(step)] : null)));
        const sparse = values.filter((value) => value !== null).length < values.length / 2;
        const line = colour(COLOURS[(series.length - 1) % COLOURS.length]);
        series.push({
          label: runs.length > 1 ? `${name}, ${runs[number]}` : name,
          stroke: line, width: 1.6, dash: number ? [6, 3] : [], spanGaps: true,
          points: { show: sparse || steps.length < 40, size: sparse ? 7 : 5, stroke: line },
          value: (_, value) => (value === null || value === undefined ? "–" : Number(value.toPrecision(3)).toString()),
        });
      }
    });
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--rule"), width: 1 }, ticks: { stroke: colour("--rule") } };
    const options = {
      width: plot.canvas.clientWidth || 400, height: 190, series,
      scales: { x: { time: false }, y: { range: (_, low, high) => plot.range(low, high) } },
      axes: [{ ...axis, label: "step", labelSize: 18, size: 30, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
        values: (_, steps) => steps.map(named) }, axis],
      cursor: { sync: { key: "steps" }, drag: { x: true, y: false } },
      legend: { live: true },
    };
    if (plot.drawn) plot.drawn.destroy();
    plot.drawn = new uPlot(options, data, plot.canvas);
  };

  const share = () => [0, 1];
  const fitted = (low, high) => {
    if (low === null) return [0, 1];
    const space = (high - low || Math.abs(high) || 1) * 0.08;
    return [low - space, high + space];
  };
  const least = (size) => (low, high) => [Math.min(0, low ?? 0), Math.max(size, high ?? 0) * 1.05];
  const CHARTS = [
    ["Answers and judge", ["accuracy/round_0", "accuracy", "winner/accuracy", "judge/accuracy"], share, "share"],
    ["Held out", ["eval/direct/accuracy", "eval/debate/winner/accuracy", "eval/judge/accuracy"], share, "share"],
    ["Loss", ["loss", "eval/sft/loss"], (low, high) => [Math.min(-0.05, low ?? 0) * 1.05, Math.max(0.05, high ?? 0) * 1.05], ""],
    ["KL", ["kl_mean", "mismatch_kl"], least(0.05), "nats"],
    ["Entropy", ["entropy_mean"], least(1), "nats"],
  ];

  const overlaid = () => [...document.querySelectorAll("#overlay option:checked")].map((option) => option.value).filter(Boolean);
  const redraw = () => Promise.all(plots.map(draw));

  const start = async () => {
    here = await (await fetch("metrics.json")).json();
    if (here.steps.length < 2) {
      if (document.querySelector("[data-live]")) setTimeout(start, POLL_MS);
      return;
    }
    const known = new Set(here.names);
    const board = document.createElement("div");
    board.className = "plots";
    for (const [title, names, range, unit] of CHARTS) {
      const there = names.filter((name) => known.has(name));
      if (there.length) board.append(make(title, there, range, unit).figure);
    }
    const own = make("Any metric", ["reward/peer/std"].filter((name) => known.has(name)), fitted, "");
    const choices = Object.assign(document.createElement("select"), { id: "metric" });
    choices.append(...here.names.map((name) => new Option(name, name, false, name === own.names[0])));
    const label = Object.assign(document.createElement("label"), { htmlFor: "metric", textContent: "Metric " });
    own.figure.querySelector("figcaption").replaceChildren(label, choices);
    choices.addEventListener("change", () => { own.names = [choices.value]; draw(own); });
    board.append(own.figure);
    const bar = document.createElement("p");
    if (here.runs.length) {
      const select = Object.assign(document.createElement("select"), { id: "overlay" });
      select.append(new Option("no other run", ""), ...here.runs.map((run) => new Option(run, run)));
      const text = Object.assign(document.createElement("label"), { htmlFor: "overlay", textContent: "Compare with " });
      select.addEventListener("change", redraw);
      bar.append(text, select, " ");
    }
    bar.append("Drag to zoom, double-click to reset.");
    bar.className = "faint";
    place.replaceChildren(bar, board);
    await redraw();
    addEventListener("resize", () => plots.forEach((plot) => plot.drawn?.setSize({ width: plot.canvas.clientWidth, height: 190 })));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    if (document.querySelector("[data-live]")) setInterval(() => document.hidden || redraw(), POLL_MS);
  };
  start().catch(() => { /* the server is away */ });
})();
