// Pictures of one's own: drawn, or from a file.

const MOST_BYTES = 4e6; // the server takes no more

// `take` is called with the pixels that the server has made of a picture, or with nothing when it is cleared.
function startOwn(asks, take) {
  const [pad, file, inverted] = [byId("pad"), byId("file"), byId("inverted")];
  const context = pad.getContext("2d");
  let from, pixels;
  let sent = 0;
  const wipe = () => ((context.fillStyle = "black"), context.fillRect(0, 0, pad.width, pad.height));

  async function send(content) {
    const number = ++sent;
    try {
      const response = await askServer(`/picture?${new URLSearchParams(asks)}`, content);
      const answer = new Uint8Array(await response.arrayBuffer());
      if (number !== sent) return; // a newer one is on its way
      pixels = answer;
      trouble();
      give();
      if (response.headers.get("Told")) trouble(new Error(response.headers.get("Told")));
    } catch (error) {
      if (number === sent) trouble(error);
    }
  }
  const give = () => pixels && take(inverted.checked ? pixels.map((value) => 255 - value) : pixels);

  function drawTo(event) {
    const zoom = pad.width / pad.clientWidth;
    const to = [event.offsetX * zoom, event.offsetY * zoom];
    Object.assign(context, { strokeStyle: "white", lineWidth: pad.width / 11, lineCap: "round", lineJoin: "round" });
    context.beginPath();
    context.moveTo(...(from ?? to));
    context.lineTo(...to);
    context.stroke();
    from = to;
  }
  const end = () => {
    if (!from) return;
    from = undefined;
    inverted.checked = false;
    pad.toBlob(send);
  };
  pad.addEventListener("pointerdown", (event) => (pad.setPointerCapture(event.pointerId), drawTo(event)));
  pad.addEventListener("pointermove", (event) => from && drawTo(event));
  for (const name of ["pointerup", "pointercancel"]) pad.addEventListener(name, end);

  byId("clear").addEventListener("click", () => {
    sent++;
    pixels = undefined;
    file.value = "";
    inverted.checked = false;
    wipe();
    trouble();
    take();
  });
  inverted.addEventListener("change", give);
  file.addEventListener("change", () => {
    const [chosen] = file.files;
    if (!chosen) return;
    if (chosen.size <= MOST_BYTES) return send(chosen);
    sent++;
    trouble(new Error(`A picture must have at most ${MOST_BYTES / 1e6} MB, but this file has ${(chosen.size / 1e6).toFixed(1)} MB.`));
  });
  wipe();
}
