// Moves the numbers of the page: its sliders choose a threshold t*, how many rows can be acted on, and how many rows
// have label 1. All sums are in the page: counts at each threshold and each rank, as analysis/positions.py makes them.
"use strict";
(() => {
  const box = document.querySelector(".movable");
  const data = JSON.parse(box.querySelector("[type='application/json']").textContent);
  const find = (name) => box.querySelector(`[name='${name}']`);
  const which = find("report"), threshold = find("threshold"), places = find("places"), ones = find("ones");
  const sections = data.reports.map((_, number) => box.querySelectorAll(`tbody:nth-of-type(${number + 1}) tr[data-way]`));
  const written = sections.map((rows) => [...rows].map((row) => row.innerHTML));

  // A number of so many decimals as Python writes it: a tie goes to the even digit.
  function fixed(value, decimals) {
    const scaled = Math.abs(value) * 10 ** decimals, low = Math.floor(scaled);
    const rounded = scaled - low === 0.5 ? low + (low % 2) : Math.round(scaled);
    const text = (rounded / 10 ** decimals).toLocaleString("en-US", {
      minimumFractionDigits: decimals, maximumFractionDigits: decimals,
    });
    return value < 0 && rounded > 0 ? `-${text}` : text;
  }

  const short = (value) => String(Number(value.toPrecision(4)));
  const amount = (value) => fixed(data.factor * value, data.decimals);
  const signed = (value) => (data.factor * value > 0 ? "+" : "") + amount(value);

  // Where the sliders stand: the place of the threshold, the share of rows with a place, and the share of label 1.
  function position(report) {
    const own = report.positives / (report.positives + report.negatives);
    const moved = ones.value !== ones.dataset.own;
    const room = places.value === places.defaultValue ? data.room : Number(places.value) / data.places;
    return {
      k: Number(threshold.value), room, moved: moved || places.value !== places.defaultValue, limited: 1 > room,
      ones: moved ? Number(ones.value) / data.places : own, own,
    };
  }

  // Each way of acting: rows acted on of label 1 and 0, what that is worth per decision, and its interval's half width.
  function ways(report, at) {
    const { positives, negatives } = report, total = positives + negatives, t = data.at[at.k], unit = data.unit;
    const one = at.ones / at.own, zero = (1 - at.ones) / (1 - at.own), room = at.room * total;
    const best = one * positives * data.right[1] + zero * negatives * data.right[0];
    const acted = (hits, alarms) => one * hits + zero * alarms;

    function way(hits, alarms, top, half = 0) {
      if (top && acted(hits, alarms) > room * (1 + 1e-12)) [hits, alarms] = highest(top);
      const lost = one * (positives - hits) * (1 - t) + zero * alarms * t;
      return { hits: one * hits, alarms: zero * alarms, missed: one * (positives - hits), lost: lost / total,
               worth: (best - unit * lost) / total, half: unit * half };
    }

    // The rows of the highest ranks that have a place.
    function highest(top) {
      const share = total / data.places, weight = (k) => acted(top[k], k * share - top[k]);
      let k = Math.max(Math.min(Math.round(at.room * data.places), data.places), 0);
      while (k > 0 && weight(k - 1) >= room) k -= 1;
      while (k < data.places && weight(k) < room) k += 1;
      if (k === 0) return [0, 0];
      const part = (room - weight(k - 1)) / (weight(k) - weight(k - 1));
      const hits = top[k - 1] + part * (top[k] - top[k - 1]);
      return [hits, (k - 1 + part) * share - hits];
    }

    const { recalibrated, featured } = report, share = Math.min(at.room, 1);
    let hits = report.hits[at.k], alarms = report.alarms[at.k], half = 0;
    const found = { never: way(0, 0), always: way(share * positives, share * negatives), now: way(hits, alarms, report.top) };
    for (const [name, moved] of [["recalibrate", recalibrated], ["post-train", featured]]) {
      if (!moved) continue;
      hits += moved.hits[at.k];
      alarms += moved.alarms[at.k];
      half = Math.hypot(half, moved.half[at.k]);
      found[name] = way(hits, alarms, name === "recalibrate" ? report.top : moved.top, half);
    }
    found.perfect = way(Math.min(positives, room / one), 0);
    return found;
  }

  function fill(rows, found, at, total) {
    const count = (rows) => fixed((data.of * rows) / total, data.counted);
    rows.forEach((row) => {
      const way = found[row.dataset.way], cells = row.querySelectorAll("td");
      const gain = way.worth - found.now.worth, known = way.half > 0 && !at.moved && !at.limited;
      cells[1].textContent = amount(way.worth);
      cells[2].textContent = way === found.now ? "–" : signed(gain);
      if (known) {
        const ends = document.createElement("span");
        ends.className = "ends";
        ends.textContent = `[${amount(gain - way.half)}, ${amount(gain + way.half)}]`;
        cells[2].append(ends);
      }
      [way.hits + way.alarms, way.alarms, way.missed].forEach((each, k) => { cells[3 + k].textContent = count(each); });
    });
  }

  // The dot on a picture: where the score as it is stands, on axes that the picture says.
  function place(figure, found, t) {
    const [kind, ...frame] = figure.dataset.frame.split(" "), [left, right, bottom, top, x0, x1, y0, y1] = frame.map(Number);
    const constant = Math.max(found.never.worth, found.always.worth);
    const y = kind === "brier" ? found.now.lost : data.factor * (found.now.worth - constant);
    let dot = figure.querySelector(".dot");
    if (!dot) {
      dot = figure.querySelector(".frame").appendChild(document.createElement("span"));
      figure.querySelector("figcaption").append(" The dot is the score as it is, where the sliders stand.");
    }
    const [across, up] = [(t - x0) / (x1 - x0), (y - y0) / (y1 - y0)];
    dot.className = "dot";
    dot.hidden = across < 0 || across > 1 || up < 0 || up > 1;
    dot.style.left = `${100 * (left + across * (right - left))}%`;
    dot.style.top = `${100 * (1 - bottom - up * (top - bottom))}%`;
  }

  function show() {
    const report = data.reports[Number(which.value)], at = position(report), t = data.at[at.k];
    const found = ways(report, at);
    sections.forEach((rows, number) => {
      rows[0].closest("tbody").hidden = number !== Number(which.value);
    });
    const still = report.limited && at.k === data.own && !at.moved;
    if (still) sections[Number(which.value)].forEach((row, k) => { row.innerHTML = written[Number(which.value)][k]; });
    else fill(sections[Number(which.value)], found, at, report.positives + report.negatives);
    document.querySelectorAll("figure[data-frame]").forEach((figure) => place(figure, found, t));
    const costs = `${short(t)}: a false alarm costs ${short(data.unit * t)}, a miss ${short(data.unit * (1 - t))}`;
    find("t").textContent = costs;
    threshold.setAttribute("aria-valuetext", costs);
    const room = data.of * at.room, whole = Math.abs(room - Math.round(room)) < 1e-6;
    find("room").textContent = `${fixed(room, whole ? 0 : 1)} of ${fixed(data.of, 0)} rows`;
    find("share").textContent = `${fixed(100 * at.ones, 1)} %`;
    const names = Object.keys(found).filter((name) => name !== "perfect");
    const most = names.reduce((one, other) => (found[other].worth > found[one].worth ? other : one));
    const open = at.moved || (at.limited && at.k !== data.own);
    const advised = open ? most : data.ways[report.advice[at.k]];
    const more = found[advised].worth - found.now.worth;
    const over = advised === "now" ? "" : `, ${amount(Math.abs(more))} ${more < 0 ? "less" : "more"} than the score as it is`;
    const here = open ? "Worth most here, by the estimates" : "If you decide at this threshold";
    find("advice").textContent = still ? report.limited : `${here}: ${data.words[advised]} (${amount(found[advised].worth)} ${data.span}${over}).` +
      (at.moved ? " The intervals and the other numbers on this page do not move with these two sliders."
        : at.limited ? " With your capacity these worths have no intervals." : "");
  }

  function start() {
    const { positives, negatives } = data.reports[Number(which.value)];
    ones.dataset.own = ones.value = String(Math.round((data.places * positives) / (positives + negatives)));
    show();
  }

  which.addEventListener("change", start);
  [threshold, places, ones].forEach((slider) => slider.addEventListener("input", show));
  find("back").addEventListener("click", () => {
    threshold.value = data.own;
    places.value = places.defaultValue;
    start();
  });
  box.querySelector(".controls").hidden = false;
  start();
})();
