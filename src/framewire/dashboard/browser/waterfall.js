// A flow as a waterfall: a row a message, with a bar for its way, its waiting and its work. A row that is picked is
// told to the server, which shows what nodes recorded of it, and becomes part of the address.
export default {
  props: { legs: Array, picked: Number, length: String },
  methods: {
    pick(at) {
      const here = new URL(window.location.href);
      here.searchParams.set("leg", at + 1);
      window.history.replaceState(window.history.state, "", here);
      this.$emit("pick", at);
    },
  },
  template: `
    <div class="fw-waterfall" role="region" aria-label="Messages on a line of time" tabindex="0">
      <div class="legend" aria-hidden="true">
        <span class="way"><i></i>on its way</span><span class="wait"><i></i>waiting</span><span class="work"><i></i>at work</span>
        <span class="end">{{ length }}</span>
      </div>
      <ol>
        <li v-for="(leg, at) in legs" :key="at">
          <button type="button" :class="{ picked: at === picked, wrong: leg.wrong }" :aria-pressed="at === picked ? 'true' : 'false'"
                  :aria-label="leg.told" @click="pick(at)">
            <span class="at">{{ leg.at }}</span>
            <span class="who"><strong>{{ leg.message }}</strong><small>{{ leg.way }}</small></span>
            <span class="bars">
              <i v-for="(bar, place) in leg.bars" :key="place" :class="bar.kind" :style="{ left: bar.left + '%', width: bar.width + '%' }"></i>
              <i :class="['tip', { wrong: leg.wrong }]" :style="{ left: leg.end + '%' }"></i>
            </span>
            <span class="took">{{ leg.took }}</span>
            <span class="fate" :class="leg.tone">{{ leg.fate }}</span>
          </button>
        </li>
      </ol>
    </div>`,
};
