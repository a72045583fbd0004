// The choice of a network: a trained one by name, or an untrained one of any kind. What is shown of the picture goes along.

const TITLES = { group: "Group", encoding: "Encoding", form: "Form", neighbourhood: "Neighbourhood", window: "Window" };

// What was shown before another network was chosen, in this window alone.
function carried(data) {
  try {
    const { side, ...shown } = JSON.parse(sessionStorage.getItem("shown")) ?? {};
    sessionStorage.removeItem("shown");
    if (shown.pixels && side !== data.side) Object.assign(shown, { digit: 0, pixels: undefined });
    return { ...shown, picture: 0, pixels: shown.pixels && Uint8Array.from(shown.pixels) };
  } catch {
    return {}; // a browser that keeps nothing
  }
}

// `asks` names the network that is shown, and the key of the page; `kinds` are name → value → what it is called.
function startAnother(asks, names, kinds, { side, kind }, state) {
  const isMade = Boolean(asks.group);
  const shown = isMade ? `an untrained network, ${kind}` : `${names[asks.network]}, ${kind}`;
  options(byId("network"), isMade ? [...names, "an untrained one"] : names);
  byId("network").value = isMade ? names.length : asks.network;
  byId("network").addEventListener("change", (event) => {
    if (Number(event.target.value) < names.length) go({ network: event.target.value });
  });

  byId("shown").lastElementChild.textContent = shown;
  const form = byId("another");
  const chosen = isMade ? asks : { group: "R4", encoding: "functional", form: "regular", neighbourhood: "5", window: "square" };
  const selects = Object.entries(kinds).map(([name, values]) => {
    const choices = Object.entries(values).map(([value, textContent]) => element("option", { value, textContent }));
    const select = element("select", { name }, ...choices);
    select.value = chosen[name];
    return element("label", {}, TITLES[name], select);
  });
  form.querySelector(".kinds").prepend(...selects);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    trouble();
    const wanted = Object.fromEntries(new FormData(form));
    await askServer(addressOf(wanted)).then(() => go(wanted), refuse); // what cannot be combined is said here
  });

  function refuse(error) {
    trouble(new Error(`${error.message} (Still shown: ${shown}.)`));
  }

  function addressOf(query) {
    return `/?${new URLSearchParams({ ...query, key: asks.key })}`;
  }

  function go(query) {
    const { digit, mirror, down, right, angle, pixels } = state;
    try {
      sessionStorage.setItem("shown", JSON.stringify({ side, digit, mirror, down, right, angle, pixels: pixels && [...pixels] }));
    } catch {
      // then it begins with the first digit
    }
    location.assign(addressOf(query));
  }
}
