// The indicators there are, in the order of the menu.
import { bollinger } from "./bollinger.js";
import { ema } from "./ema.js";
import { macd } from "./macd.js";
import { rsi } from "./rsi.js";
import { sma } from "./sma.js";
import { vwap } from "./vwap.js";

export const INDICATORS = [sma, ema, bollinger, vwap, rsi, macd];
