// What every page runs. Each module looks after fragments that are swapped in later, too.
import "./htmx-config.js";
import "./relative-time.js";
import "./countdown.js";
import "./dialog.js";
import "./shortcuts.js";
import "./draft.js";
import "./refresh.js";
import "./live-list.js";
import "./edit-arguments.js";
import "./hold.js";
import "./approve-ready.js";
import "./copy.js";
