// Filters as a form. What it says becomes the query of the address, without what is empty.
export default {
  props: { fields: Array, others: Array, csv: String },
  computed: {
    used() {
      return this.fields.some((field) => field.value) || (this.others || []).length > 0;
    },
  },
  methods: {
    go(event) {
      const told = new URLSearchParams();
      for (const [name, value] of new FormData(this.$refs.form)) if (value) told.append(name, value);
      const query = told.toString();
      window.location.assign(window.location.pathname + (query ? `?${query}` : ""));
    },
    kind(field) {
      return { moment: "datetime-local", number: "number" }[field.kind] || "text";
    },
  },
  template: `
    <form ref="form" class="fw-filters" role="search" aria-label="Filters" @submit.prevent="go">
      <label v-for="field in fields" :key="field.name">{{ field.label }}
        <select v-if="field.kind === 'choice'" :name="field.name" @change="go">
          <option v-for="option in field.options" :key="option.value" :value="option.value"
                  :selected="option.value === field.value">{{ option.label }}</option>
        </select>
        <input v-else :type="kind(field)" :name="field.name" :value="field.value" :placeholder="field.hint"
               :class="{ short: field.kind === 'number' }" :min="field.kind === 'number' ? 0 : undefined"
               :step="field.kind === 'moment' ? 1 : field.kind === 'number' ? 'any' : undefined" maxlength="400">
      </label>
      <input v-for="[name, value] in others || []" :key="name" type="hidden" :name="name" :value="value">
      <button type="submit" class="fw-button main">Search</button>
      <a v-if="used" class="fw-button" href="?">Clear</a>
      <a v-if="csv" class="fw-button" :href="csv" download>Export CSV</a>
    </form>`,
};
