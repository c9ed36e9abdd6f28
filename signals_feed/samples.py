"""The signals that the references of REST and the stream show."""

ACTIVE = {
    "id": "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01",
    "user": "marta",
    "symbol": "EURUSD",
    "direction": "buy",
    "entry": 1.0842,
    "stop_loss": 1.081,
    "take_profit": 1.09,
    "status": "active",
    "timestamp": "2026-11-20T09:12:44.118Z",
}
CLOSED = {
    "id": "0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77",
    "user": "kenji",
    "symbol": "XAUUSD",
    "direction": "sell",
    "entry": 2651.4,
    "stop_loss": 2660.4,
    "take_profit": 2633.4,
    "status": "closed",
    "timestamp": "2026-11-19T15:40:02.730Z",
    "pnl": 1800.0,
    "pnl_percent": 0.6789,
    "pnl_r": 2.0,
    "close_price": 2633.4,
    "closed_at": "2026-11-20T08:31:17.004Z",
    "close_reason": "take_profit",
}
PUBLISHER = {
    "user": "marta",
    "active": 1,
    "signals": 2,
    "win_rate": 0.5,
    "expectancy_r": 0.5,
    "total_r": 1.0,
    "too_few": True,
    "best_excursion_r": 2.0,
    "worst_excursion_r": -1.125,
    "max_drawdown_r": 1.0,
    "max_drawdown_signals": 1,
    "closed_by": {"take_profit": 1, "stop_loss": 1, "manual": 0, "expired": 0, "cancelled": 0},
    "by_symbol": [
        {"symbol": "EURUSD", "signals": 1, "win_rate": 0.0, "expectancy_r": -1.0, "total_r": -1.0},
        {"symbol": "XAUUSD", "signals": 1, "win_rate": 1.0, "expectancy_r": 2.0, "total_r": 2.0},
    ],
    "equity": [
        {"signals": 1, "time": "2026-11-20T08:31:17.004Z", "r": 2.0, "low_r": 2.0, "high_r": 2.0},
        {"signals": 2, "time": "2026-11-20T11:02:54.310Z", "r": 1.0, "low_r": 1.0, "high_r": 1.0},
    ],
}
