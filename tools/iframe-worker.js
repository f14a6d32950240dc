// A page that is opened as a file may start no worker, in which the search of the site runs: a hidden frame is one then.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.document.write("<body></body>");
      this.scope.document.close();
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.importScripts = async (...urls) => {
        for (const each of urls) await this.#loaded(each);
      };
      this.ready = this.#loaded(url);
    }

    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }

    #loaded(url) {
      const script = Object.assign(this.scope.document.createElement("script"), { src: url });
      return new Promise((resolve, reject) => {
        Object.assign(script, { onload: resolve, onerror: reject });
        this.scope.document.body.append(script);
      });
    }
  };
}
