// Browsers refuse workers for pages of the file system. There, this runs the script of a worker in a hidden frame, so
// that the search works without a server. Pages from a server use the browser's own workers.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.receive(data);
      inside.importScripts = (...urls) =>
        urls.reduce(
          (before, one) => before.then(() => this.load(inside, one)),
          Promise.resolve(),
        );
      this.load(inside, url).then(() => {
        this.inside = inside;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    load(inside, url) {
      return new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, document.baseURI).href;
        script.onload = resolve;
        script.onerror = reject;
        inside.document.body.append(script);
      });
    }

    postMessage(data) {
      if (!this.inside) {
        this.waiting.push(data);
        return;
      }
      const message = new MessageEvent("message", { data });
      setTimeout(() => this.inside.dispatchEvent(message));
    }

    receive(data) {
      const message = new MessageEvent("message", { data });
      setTimeout(() => {
        this.dispatchEvent(message);
        this.onmessage?.(message);
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
