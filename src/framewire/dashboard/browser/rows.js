// A table: sorted by a click on a heading, cards where the window is narrow. Values are only ever put into text and
// into attributes that Vue escapes; addresses come from the server, which makes them itself.
export default {
  props: { caption: String, columns: Array, rows: Array },
  data() {
    return { by: -1, down: false };
  },
  computed: {
    shown() {
      const rows = this.rows || [];
      if (this.by < 0) return rows;
      const key = (row) => {
        const cell = row[this.by];
        if (cell === null || typeof cell !== "object") return cell;
        return cell.sort === undefined ? cell.text : cell.sort;
      };
      const order = (a, b) => {
        const [one, other] = [key(a), key(b)];
        if (typeof one === "number" && typeof other === "number") return one - other;
        return String(one).localeCompare(String(other), "en", { numeric: true });
      };
      const sorted = [...rows].sort(order);
      return this.down ? sorted.reverse() : sorted;
    },
  },
  methods: {
    sort(place) {
      if (this.by !== place) [this.by, this.down] = [place, !!this.columns[place].number];
      else if (this.down === !!this.columns[place].number) this.down = !this.down;
      else this.by = -1;
    },
    sorted(place) {
      return this.by !== place ? "none" : this.down ? "descending" : "ascending";
    },
    mark(place) {
      return this.by !== place ? "" : this.down ? "↓" : "↑";
    },
    cell(value) {
      if (value !== null && typeof value === "object") return value;
      return { text: value === null ? "—" : typeof value === "number" ? value.toLocaleString("en") : value };
    },
    classes(column, value) {
      const { text, tone, mono } = this.cell(value);
      return [{ number: column.number, wide: column.wide, mono, long: String(text).length > 40 }, tone];
    },
    line(points) {
      const most = Math.max(...points, 1e-9);
      const step = 64 / Math.max(points.length - 1, 1);
      return points.map((point, at) => `${(at * step).toFixed(1)},${(15 - (point / most) * 13).toFixed(1)}`).join(" ");
    },
  },
  template: `
    <div class="fw-table" role="region" :aria-label="caption" tabindex="0">
      <table>
        <caption class="fw-unseen">{{ caption }}</caption>
        <thead>
          <tr>
            <th v-for="(column, place) in columns" :key="place" scope="col" :aria-sort="sorted(place)"
                :class="{ number: column.number, wide: column.wide }">
              <button type="button" @click="sort(place)">{{ column.label }}<i aria-hidden="true">{{ mark(place) }}</i></button>
            </th>
          </tr>
        </thead>
        <tbody>
          <tr v-for="(row, index) in shown" :key="index">
            <td v-for="(column, place) in columns" :key="place" :data-label="column.label"
                :class="classes(column, row[place])" :title="cell(row[place]).title">
              <svg v-if="cell(row[place]).points && cell(row[place]).points.length > 1" class="fw-line"
                   viewBox="0 0 64 16" aria-hidden="true"><polyline :points="line(cell(row[place]).points)" /></svg>
              <a v-if="cell(row[place]).href" :href="cell(row[place]).href">{{ cell(row[place]).text }}</a>
              <span v-else>{{ cell(row[place]).text }}</span>
            </td>
          </tr>
        </tbody>
      </table>
    </div>`,
};
