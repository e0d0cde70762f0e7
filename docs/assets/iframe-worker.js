// Search without a server: browsers start no worker on a page that was opened from a folder, so
// that there the search runs in a hidden frame, which speaks as a worker does. With a server it is
// not used. The theme's offline plugin would ask another host for such a script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.title = "search"
      this.frame.addEventListener("load", () => this.begin(url), { once: true })
      document.body.append(this.frame)
    }

    begin(url) {
      const inside = this.frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = url
      script.addEventListener("load", () => {
        const waiting = this.waiting
        this.waiting = undefined
        waiting.forEach(data => this.postMessage(data))
      })
      inside.document.head.append(script)
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
