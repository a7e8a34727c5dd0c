// Nodes and edges to pan, zoom and click. Every one of them is a link, so the keyboard reaches it and its address can
// be shared; what it has to say is told in words when it is pointed at or focused, and is its label for those who listen.
export default {
  props: { label: String, nodes: Array, edges: Array, wide: Number, high: Number },
  data() {
    return { x: 0, y: 0, zoom: 1, drag: null, pointed: "" };
  },
  computed: {
    view() {
      return `${this.x} ${this.y} ${this.wide / this.zoom} ${this.high / this.zoom}`;
    },
    // Looked up anew whenever the drawing changes, so that what is said of a live cluster is what it is now.
    said() {
      const found = this.nodes.find((node) => node.key === this.pointed) || this.edges.find((edge) => this.way(edge) === this.pointed);
      return found ? found.said : "";
    },
    byName() {
      return Object.fromEntries(this.nodes.map((node) => [node.key, node]));
    },
    lines() {
      return this.edges.map((edge) => {
        const from = this.byName[edge.from];
        const to = this.byName[edge.to];
        const [dx, dy] = [to.x - from.x, to.y - from.y];
        const length = Math.hypot(dx, dy) || 1;
        const bend = Math.min(46, length / 5);
        const [cx, cy] = [(from.x + to.x) / 2 - (dy / length) * bend, (from.y + to.y) / 2 + (dx / length) * bend];
        const near = (node, reach) => {
          const [ax, ay] = [cx - node.x, cy - node.y];
          const size = Math.hypot(ax, ay) || 1;
          return [node.x + (ax / size) * reach, node.y + (ay / size) * reach];
        };
        const [sx, sy] = near(from, from.r + 2);
        const [ex, ey] = near(to, to.r + 4 + edge.width);
        const angle = Math.atan2(ey - cy, ex - cx);
        const size = 5 + edge.width * 1.1;
        const corner = (turn) => `${(ex + Math.cos(angle + turn) * size).toFixed(1)},${(ey + Math.sin(angle + turn) * size).toFixed(1)}`;
        return { ...edge, path: `M${sx} ${sy}Q${cx} ${cy} ${ex} ${ey}`, head: [corner(0), corner(2.5), corner(-2.5)].join(" ") };
      });
    },
  },
  methods: {
    way(edge) {
      return `${edge.from} ${edge.to}`;
    },
    scale() {
      return this.wide / this.zoom / this.$refs.svg.getBoundingClientRect().width;
    },
    wheel(event) {
      const box = this.$refs.svg.getBoundingClientRect();
      this.closer(event.deltaY < 0 ? 1.15 : 1 / 1.15, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    },
    closer(by, u = 0.5, v = 0.5) {
      const zoom = Math.min(Math.max(this.zoom * by, 0.5), 8);
      this.x += (this.wide / this.zoom - this.wide / zoom) * u;
      this.y += (this.high / this.zoom - this.high / zoom) * v;
      this.zoom = zoom;
    },
    all() {
      [this.x, this.y, this.zoom] = [0, 0, 1];
    },
    down(event) {
      if (event.button === 0) this.drag = { x: event.clientX, y: event.clientY, moved: false };
    },
    moved(event) {
      if (!this.drag) return;
      const [dx, dy] = [event.clientX - this.drag.x, event.clientY - this.drag.y];
      if (!this.drag.moved && Math.hypot(dx, dy) < 4) return;
      this.x -= dx * this.scale();
      this.y -= dy * this.scale();
      this.drag = { x: event.clientX, y: event.clientY, moved: true };
    },
    up(event) {
      if (this.drag && this.drag.moved) window.addEventListener("click", (click) => click.preventDefault(), { capture: true, once: true });
      this.drag = null;
    },
    pan(dx, dy) {
      this.x += (dx * 60) / this.zoom;
      this.y += (dy * 60) / this.zoom;
    },
  },
  template: `
    <div class="fw-graph" role="group" :aria-label="label">
      <div class="bar">
        <button type="button" class="fw-button" aria-label="Zoom in" @click="closer(1.3)">+</button>
        <button type="button" class="fw-button" aria-label="Zoom out" @click="closer(1 / 1.3)">−</button>
        <button type="button" class="fw-button" @click="all">All</button>
        <span class="said" aria-hidden="true">{{ said }}</span>
      </div>
      <svg ref="svg" :viewBox="view" :aria-label="label" tabindex="0" @wheel.prevent="wheel" @pointerdown="down" @pointermove="moved"
           @pointerup="up" @pointerleave="drag = null" @dragstart.prevent
           @keydown.self.left.prevent="pan(-1, 0)" @keydown.self.right.prevent="pan(1, 0)"
           @keydown.self.up.prevent="pan(0, -1)" @keydown.self.down.prevent="pan(0, 1)">
        <a v-for="edge in lines" :key="way(edge)" :href="edge.href" :aria-label="edge.said" :class="['edge', edge.tone, { picked: edge.picked }]"
           @pointerenter="pointed = way(edge)" @pointerleave="pointed = ''" @focus="pointed = way(edge)" @blur="pointed = ''">
          <title>{{ edge.said }}</title>
          <path class="reach" :d="edge.path" />
          <path class="line" :d="edge.path" :stroke-width="edge.width" />
          <polygon :points="edge.head" />
        </a>
        <a v-for="node in nodes" :key="node.key" :href="node.href" :aria-label="node.said" :class="['node', node.tone, { picked: node.picked }]"
           @pointerenter="pointed = node.key" @pointerleave="pointed = ''" @focus="pointed = node.key" @blur="pointed = ''">
          <title>{{ node.said }}</title>
          <circle :cx="node.x" :cy="node.y" :r="node.r" />
          <text :x="node.x" :y="node.y + node.r + 17" text-anchor="middle">{{ node.name }}</text>
        </a>
      </svg>
    </div>`,
};
