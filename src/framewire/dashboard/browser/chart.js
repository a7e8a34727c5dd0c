// Something over time: lines, or bars one on another. The value under the pointer, or of the focused step, is told in
// words below; colours are never the only sign.
const units = [[86400e6, "d"], [3600e6, "h"], [60e6, "min"], [1e6, "s"], [1e3, "ms"], [1, "µs"]];
export default {
  props: { label: String, kind: String, unit: String, times: Array, series: Array },
  data() {
    return { at: -1, width: 640 };
  },
  mounted() {
    this.watcher = new ResizeObserver(([entry]) => (this.width = Math.max(entry.contentRect.width, 200)));
    this.watcher.observe(this.$refs.box);
  },
  unmounted() {
    this.watcher.disconnect();
  },
  computed: {
    height: () => 150,
    left: () => 54,
    stacks() {
      return this.times.map((_, at) => this.series.reduce((sum, each) => sum + (each.values[at] || 0), 0));
    },
    most() {
      const values = this.kind === "bars" ? this.stacks : this.series.flatMap((each) => each.values);
      return Math.max(...values.filter((value) => value !== null), 0) || 1;
    },
    ticks() {
      const rough = this.most / 3;
      const size = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough);
      return Array.from({ length: Math.floor(this.most / step) + 1 }, (_, at) => at * step);
    },
    step() {
      return (this.width - this.left - 8) / Math.max(this.times.length, 1);
    },
    days() {
      const every = Math.max(1, Math.ceil(96 / this.step));
      return this.times.map((time, at) => ({ time, at })).filter(({ at }) => at % every === 0);
    },
    bars() {
      return this.times.flatMap((_, at) => {
        let below = 0;
        return this.series.map((each) => {
          const from = this.y(below);
          below += each.values[at] || 0;
          return { key: `${at}-${each.name}`, x: this.left + at * this.step + 1, y: this.y(below), high: from - this.y(below), tone: each.tone };
        }).filter((bar) => bar.high > 0);
      });
    },
    lines() {
      return this.series.map((each) => {
        const runs = [[]];
        each.values.forEach((value, at) => {
          if (value === null) runs.push([]);
          else runs[runs.length - 1].push(`${this.x(at).toFixed(1)},${this.y(value).toFixed(1)}`);
        });
        return { name: each.name, tone: each.tone, runs: runs.filter((run) => run.length) };
      });
    },
    said() {
      if (this.at < 0 || this.at >= this.times.length) return this.label;
      const values = this.series.map((each) => `${each.name} ${this.told(each.values[this.at])}`);
      return `${this.times[this.at]}: ${values.join(", ")}`;
    },
  },
  methods: {
    x(at) {
      return this.left + (at + 0.5) * this.step;
    },
    y(value) {
      return this.height - 22 - (value / this.most) * (this.height - 32);
    },
    told(value) {
      if (value === null || value === undefined) return "—";
      if (this.unit !== "us") return value.toLocaleString("en");
      const [size, name] = units.find(([size]) => value >= size) || [1, "µs"];
      return `${+(value / size).toPrecision(3)} ${name}`;
    },
    point(event) {
      const box = this.$refs.box.getBoundingClientRect();
      this.at = Math.min(Math.max(Math.floor((event.clientX - box.left - this.left) / this.step), 0), this.times.length - 1);
    },
    move(by) {
      this.at = Math.min(Math.max(this.at + by, 0), this.times.length - 1);
    },
  },
  template: `
    <figure class="fw-chart">
      <figcaption>
        <span class="keys"><span v-for="each in series" :key="each.name" :class="each.tone"><i aria-hidden="true"></i>{{ each.name }}</span></span>
        <span class="said" aria-live="polite">{{ said }}</span>
      </figcaption>
      <div ref="box">
        <svg :viewBox="'0 0 ' + width + ' ' + height" :width="width" :height="height" role="img" :aria-label="label" tabindex="0"
             @pointermove="point" @pointerleave="at = -1" @keydown.right.prevent="move(1)" @keydown.left.prevent="move(-1)">
          <g v-for="tick in ticks" :key="tick">
            <line class="grid" :x1="left" :x2="width - 8" :y1="y(tick)" :y2="y(tick)" />
            <text :x="left - 8" :y="y(tick) + 4" text-anchor="end">{{ told(tick) }}</text>
          </g>
          <text v-for="day in days" :key="day.at" :x="x(day.at)" :y="height - 5" :text-anchor="day.at ? 'middle' : 'start'">{{ day.time }}</text>
          <rect v-if="at >= 0" class="here" :x="left + at * step" y="4" :width="step" :height="height - 26" />
          <template v-if="kind === 'bars'">
            <rect v-for="bar in bars" :key="bar.key" :class="['bar', bar.tone]" :x="bar.x" :y="bar.y" :width="Math.max(step - 2, 1)" :height="bar.high" />
          </template>
          <template v-else>
            <g v-for="line in lines" :key="line.name" :class="['line', line.tone]">
              <template v-for="(run, at) in line.runs" :key="at">
                <polyline v-if="run.length > 1" :points="run.join(' ')" />
                <circle v-else :cx="run[0].split(',')[0]" :cy="run[0].split(',')[1]" r="2" />
              </template>
            </g>
          </template>
        </svg>
      </div>
    </figure>`,
};
