// One number with its name, and a line of how it went lately.
export default {
  props: { label: String, value: String, points: Array, tone: String, note: String },
  computed: {
    line() {
      const points = this.points || [];
      const most = Math.max(...points, 1e-9);
      const step = 100 / Math.max(points.length - 1, 1);
      return points.map((point, at) => `${(at * step).toFixed(1)},${(23 - (point / most) * 21).toFixed(1)}`).join(" ");
    },
  },
  template: `
    <div class="fw-figure" :class="tone" role="group" :aria-label="label">
      <span class="label">{{ label }}</span>
      <span class="value">{{ value }}</span>
      <span v-if="note" class="note">{{ note }}</span>
      <svg v-if="points && points.length > 1" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
        <polyline :points="line" />
      </svg>
    </div>`,
};
