// A button that copies a text, or the address of this page, and says for a moment that it did.
export default {
  props: { label: String, content: String, here: Boolean },
  data() {
    return { said: "" };
  },
  methods: {
    async copy() {
      const content = this.here ? window.location.href : this.content;
      try {
        await navigator.clipboard.writeText(content);
      } catch {
        // Browsers only give the clipboard to pages that came by HTTPS or from this machine.
        const area = Object.assign(document.createElement("textarea"), { value: content });
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      this.said = "Copied";
      setTimeout(() => (this.said = ""), 1600);
    },
  },
  template: `<button type="button" class="fw-button" @click="copy" :title="here ? '' : content">
    <span aria-live="polite">{{ said || label }}</span></button>`,
};
